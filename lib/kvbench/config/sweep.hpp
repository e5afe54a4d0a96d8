// SPDX-License-Identifier: Apache-2.0
// A sweep file: runs of methods, budgets and seeds on traces, such as those of a published figure or table. The format
// is described in docs/sweeps.md.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <kvbench/compare/paper_claim.hpp>
#include <kvbench/config/value.hpp>
#include <kvbench/measures/measures.hpp>
#include <kvbench/replay/plan/request.hpp>

namespace kvbench::config {

struct TraceChoice {
  std::string path;  ///< relative to the working folder
  Place place;       ///< where the file names it; after use_traces(), the origin without a line
};

/// One table of `exclude`: configurations that match all of its entries do not run.
struct Exclusion {
  Place place;
  /// keys (method, budget, trace, protocol, device, or a parameter) and values
  std::vector<std::pair<std::string, std::string>> where;
};

/// One block [[run]], with the values of [defaults] where it does not set a key.
struct SweepRun {
  std::string name;  ///< as given in the file, else its number, from 1
  Place place;
  std::vector<TraceChoice> traces;
  std::string calibrate;  ///< as open_calibration() reads it; "": none
  std::vector<replay::Protocol> protocols = {replay::Protocol::automatic};
  std::vector<std::string> devices;  ///< empty: RunOptions::backend
  replay::ReplayRequest request;     ///< all other keys; without methods where the run only measures
  std::vector<measures::Measure> measures;
  std::vector<Exclusion> exclusions;
  std::vector<std::string> zip;         ///< keys whose lists advance together
  std::map<std::string, Place> places;  ///< by key: where the file sets its value for this run
};

/// A published result for comparison with those of the sweep: a block [[published]].
struct Published {
  Place place;
  compare::PaperClaim claim;  ///< what the paper claims, and how it is tested here
  std::string paper;          ///< the number as printed in the paper
  std::string metric;         ///< column of the CSV that corresponds to it
  std::vector<std::vector<std::pair<std::string, std::string>>>
      rows;         ///< rows to show, each as columns with their values
  std::string why;  ///< why the two numbers may differ
};

struct Sweep {
  std::string file, name, description;
  std::vector<SweepRun> runs;
  std::vector<Published> published;
};

/// Reads a sweep file and checks everything that can be checked without its traces. Relative paths refer to the folder
/// of the file. Throws Error with file, line, column, cause and remedy.
Sweep read_sweep(const std::string& path);
/// The same for the text of the file `path`, which need not exist.
Sweep read_sweep(const std::string& path, const std::string& text);

/// A commented example with every key, and every method with its parameters.
std::string example_sweep();

/// Replaces the traces of every run. Errors about them begin with `origin`, such as the flag that named them.
void use_traces(Sweep& sweep, const std::vector<std::string>& paths, const std::string& origin);

/// Throws Error: the place of the first key that the message names and the file sets (else that of the run), `where`,
/// and the message with keys for the fields that it names.
[[noreturn]] void throw_in_terms_of(const SweepRun& run, const std::string& where, const std::string& message);

/// Calls `work`; an Error is rethrown by throw_in_terms_of().
template <class F>
decltype(auto) in_terms_of(const SweepRun& run, const std::string& where, F work) {
  try {
    return work();
  } catch (const Error& error) {
    throw_in_terms_of(run, where, error.what());
  }
}

}  // namespace kvbench::config
