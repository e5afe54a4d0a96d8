// SPDX-License-Identifier: Apache-2.0
// A sweep file: runs of many methods, budgets and seeds over traces, as a published figure or table needs them. The format is
// docs/sweeps.md.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <kvbench/bounds/measures.hpp>
#include <kvbench/config/value.hpp>
#include <kvbench/replay/plan/request.hpp>

namespace kvbench::config {

struct TraceChoice {
  std::string path;  ///< as it is opened
  Place place;       ///< where the file names it; no line: use_traces() did
};

/// One table of `exclude`: configurations for which all of these hold do not run.
struct Exclusion {
  Place place;
  std::vector<std::pair<std::string, std::string>> where;  ///< method, budget, trace, protocol, device, or a parameter
};

/// One [[run]], with what [defaults] says already in it.
struct SweepRun {
  std::string name;  ///< of the file, or its number from 1 on
  Place place;
  std::vector<TraceChoice> traces;
  std::vector<Protocol> protocols = {Protocol::automatic};
  std::vector<std::string> devices;  ///< empty: what the command line says
  ReplayRequest request;             ///< the rest; without methods where the run only measures
  std::vector<Measure> measures;
  std::vector<Exclusion> exclusions;
  std::vector<std::string> zip;         ///< keys whose lists advance together
  std::map<std::string, Place> places;  ///< of the values of the keys that the file sets for this run
};

/// What a paper reports, to stand beside what the sweep finds: a block [[published]].
struct Published {
  Place place;
  std::string claim;                                                   ///< what the paper says
  std::string paper;                                                   ///< its number as printed
  std::string metric;                                                  ///< column of the CSV that measures it
  std::vector<std::vector<std::pair<std::string, std::string>>> rows;  ///< each: columns and their values, of rows to show
  std::string why;                                                     ///< why the numbers may differ
};

struct Sweep {
  std::string file, name, description;
  std::vector<SweepRun> runs;
  std::vector<Published> published;
};

/// Reads and checks a sweep file as far as that needs no trace. Relative paths are taken from the file's folder. Throws Error
/// that begins with file, line and column, says what is wrong, and names what was probably meant.
Sweep read_sweep(const std::string& path);

/// A commented sweep file with every key, and every method with its parameters.
std::string example_sweep();

/// Replays these traces in every run instead of the ones of the file. `origin` says in messages who named them.
void use_traces(Sweep& sweep, const std::vector<std::string>& paths, const std::string& origin);

[[noreturn]] void throw_in_terms_of(const SweepRun& run, const std::string& where, const std::string& message);
/// Calls `work`; an Error that it throws is thrown again in terms of the sweep file: the fields that it names as keys, after the
/// place of the first of these that the file sets (else of the run) and `where`.
template <class F>
decltype(auto) in_terms_of(const SweepRun& run, const std::string& where, F work) {
  try {
    return work();
  } catch (const Error& error) {
    throw_in_terms_of(run, where, error.what());
  }
}

}  // namespace kvbench::config
