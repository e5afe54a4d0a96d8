// SPDX-License-Identifier: Apache-2.0
// The tables of a sweep: rows of its replays, and its measures, which have other columns.
#pragma once

#include <kvbench/sweep/collect.hpp>

#include <apps/common/output.hpp>
#include <apps/kvbench/run_flags.hpp>

namespace kvbench::app {

/// The destinations of the tables: with -o out.csv measures are written to out.measures.csv, or to out.csv if there are
/// no rows, and verdicts on the claims of the sweep file to out.claims.csv.
class SweepTables {
 public:
  struct Parts {
    bool replays, measures, claims;
  };

  /// `what` names the sweep. Throws Error where two tables would be written to stdout, or a table to one of `inputs` or
  /// to the file `cells` ("": none); IoError where a file cannot be written.
  SweepTables(const std::string& what, Parts parts, const TableFlags& flags, const std::vector<NamedFile>& inputs,
              const std::string& cells);
  /// Writes the tables; returns the exit code.
  int finish(const sweep::SweepResults& results);

 private:
  const Output& main() const { return records_ ? *records_ : *measures_; }

  const TableFlags& flags_;
  std::optional<Output> records_, measures_, claims_;
};

}  // namespace kvbench::app
