// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/checked_rows.hpp>

#include <cmath>

#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/read/rows.hpp>

namespace kvbench::report {

std::vector<compare::ClaimResult> claims_of(const CsvTable& table) {
  const RowReader<ClaimRow> read(table, claim_columns());
  std::vector<compare::ClaimResult> claims;
  for (const CsvRow& line : table.rows) {
    ClaimRow row = read(line);
    if (claims.empty() || claims.back().claim.text != row.claim.text)
      claims.push_back({.claim = row.claim, .verdict = row.verdict});
    if (!row.result) continue;
    compare::Comparison& comparison = row.result->comparison;
    if (!std::isnan(comparison.test.difference)) comparison.outcome = compare::Outcome::tied;  // compared
    claims.back().results.push_back(std::move(*row.result));
  }
  return claims;
}

}  // namespace kvbench::report
