// SPDX-License-Identifier: Apache-2.0
// The tables of a sweep: rows of its replays, and measures, which have columns of their own.
#pragma once

#include <kvbench/sweep/collect.hpp>

#include "output.hpp"
#include "run_flags.hpp"

namespace kvbench::app {

/// Where the tables go: with -o out.csv the measures go to out.measures.csv, or to out.csv where there is nothing else.
class SweepTables {
 public:
  /// Throws Error where two tables would go to stdout, IoError at once where a file cannot be written. `what` names the sweep.
  SweepTables(const std::string& what, bool replays, bool measures, const TableFlags& flags);
  /// Writes both; returns the exit code.
  int finish(const sweep::SweepResults& results);

 private:
  const TableFlags& flags_;
  std::optional<Output> records_, measures_;
};

}  // namespace kvbench::app
