// SPDX-License-Identifier: Apache-2.0
// What reports and terminals show of checks, measures, comparisons and claims.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/compare/paper_claim.hpp>
#include <kvbench/evidence/check_row.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/read/csv.hpp>
#include <kvbench/report/read/table_kind.hpp>
#include <kvbench/rounding/rounding.hpp>

namespace kvbench::report {

// Sections of a report; none where there are no such rows.

/// Verdicts per claim, what the data refute, bounds next to measured values, and statements that were not tested.
std::vector<Section> check_sections(std::span<const CsvTable* const> tables);
/// One figure per run, trace and measure.
std::vector<Section> measure_sections(std::span<const CsvTable* const> tables);

/// Tables that are shown as they are, each under the heading that its column `listing` has: the caption is the column
/// `about`, the column `grey` says which rows are, and the first cell leads to the path of the column `link`. Throws
/// Error for links that lead elsewhere, and where no column is left.
std::vector<Section> listing_sections(std::span<const CsvTable* const> tables);

/// One line per row, then check_findings().
std::vector<Block> every_check(std::span<const evidence::CheckRow> rows);
/// The number of rows per verdict of each claim, then check_findings().
std::vector<Block> check_summary(std::span<const evidence::CheckRow> rows);
/// One page: what is violated, what holds, what is contradicted, and what could not be decided and what it would take.
std::vector<Block> check_findings(std::span<const evidence::CheckRow> rows);

/// What the means of some comparisons are called, "geometric mean" or "mean"; mixed: some are geometric ones.
struct MeanKinds {
  std::string word;
  bool mixed = false;
};
MeanKinds mean_kinds(std::span<const compare::Comparison> rows);

/// What rounding the keys does: first which layer is worst and why, then a table of the worst head of each layer, or of
/// every head. `heads`, at least one, are rounding::worst_first().
std::vector<Block> rounding_blocks(std::span<const rounding::HeadRounding> heads, bool every_head);

/// The most important columns as a table, then compare_summary().
std::vector<Block> comparison_blocks(std::span<const compare::Comparison> rows);

/// "subgen is better in 5 of 8 groups, h2o in 1, 2 not distinguishable; Holm over 8 hypotheses at 5 %."
std::string compare_summary(std::span<const compare::Comparison> rows);

/// A claim of a paper, and the rows that its numbers are compared with.
struct Published {
  using Filter =
      std::vector<std::pair<std::string, std::string>>;  ///< column = value: run, method, params, budget, layer, ...
  std::string claim;                                     ///< as in the table of claims
  /// the number as printed in the paper, or a note that it prints none; a row may have its own column `paper`
  std::string paper;
  std::string metric;  ///< column of the CSV, such as rel_err_mean
  /// Where a filter does not name layer, kv_head, head or query, they are `all`. A filter that names a `measure`
  /// applies to the table of measures and selects the mean over all layers and heads.
  std::vector<Filter> rows;
  std::string why;  ///< possible reasons for differences
};

/// The claims with their verdicts, figures and tests; published numbers next to rows of replays, and next to means of
/// measures over heads. It answers how many claims have which verdict.
std::vector<Section> claim_sections(std::span<const Published> published, const ReportTables& tables);

}  // namespace kvbench::report
