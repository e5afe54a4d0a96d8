// SPDX-License-Identifier: Apache-2.0
// A sweep file: runs of many methods, budgets and seeds over traces, as a published figure or table needs them. The format is
// docs/sweeps.md.
#pragma once

#include <string>
#include <vector>

#include <kvbench/bounds/measures.hpp>
#include <kvbench/config/value.hpp>
#include <kvbench/replay/request.hpp>

namespace kvbench::config {

struct TraceChoice {
  std::string path;  ///< as it is opened
  Place place;       ///< where the file names it; no line: the command line did
};

/// One [[run]], with what [defaults] says already in it.
struct SweepRun {
  std::string name;  ///< of the file, or its number from 1 on
  Place place;
  std::vector<TraceChoice> traces;
  ReplayRequest request;  ///< without methods where the run only measures
  std::vector<Measure> measures;
};

struct Sweep {
  std::string file, name, description;
  std::vector<SweepRun> runs;
};

/// Reads and checks a sweep file as far as that needs no trace. Relative paths are taken from the file's folder. Throws Error
/// that begins with file, line and column, says what is wrong, and names what was probably meant.
Sweep read_sweep(const std::string& path);

/// Replays these traces in every run instead of the ones of the file.
void use_traces(Sweep& sweep, const std::vector<std::string>& paths);

}  // namespace kvbench::config
