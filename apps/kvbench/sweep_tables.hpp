// SPDX-License-Identifier: Apache-2.0
// The tables of a sweep: rows of its replays, and its measures, which have other columns.
#pragma once

#include <kvbench/sweep/collect.hpp>

#include "output.hpp"
#include "run_flags.hpp"

namespace kvbench::app {

/// The destinations of the tables: with -o out.csv measures are written to out.measures.csv, or to out.csv if there are no rows, and
/// verdicts on the claims of the sweep file to out.claims.csv.
class SweepTables {
 public:
  /// Throws Error where two tables would be written to stdout, IoError where a file cannot be written. `what` names the sweep.
  SweepTables(const std::string& what, bool replays, bool measures, bool claims, const TableFlags& flags);
  /// Writes the tables; returns the exit code.
  int finish(const sweep::SweepResults& results);

 private:
  const Output& main() const { return records_ ? *records_ : *measures_; }

  const TableFlags& flags_;
  std::optional<Output> records_, measures_, claims_;
};

}  // namespace kvbench::app
