// SPDX-License-Identifier: Apache-2.0
// The columns of every table that kvbench writes, each declared once.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/compare/paper_claim.hpp>
#include <kvbench/eval/eval_record.hpp>
#include <kvbench/evidence/check_row.hpp>
#include <kvbench/measures/measures.hpp>
#include <kvbench/replay/records/record.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

std::span<const Column<replay::Record>> record_columns();
std::span<const Column<eval::EvalRecord>> eval_columns();
std::span<const Column<compare::Comparison>> compare_columns();
std::span<const Column<measures::MeasureRow>> measure_columns();

/// The verdicts on claims of papers, and on all other statements, in the order of tables.
inline constexpr std::array claim_verdicts = {Verdict::supported, Verdict::contradicted, Verdict::undecided,
                                              Verdict::untestable};
inline constexpr std::array statement_verdicts = {Verdict::holds_with_margin, Verdict::holds, Verdict::violated,
                                                  Verdict::vacuous, Verdict::not_applicable};

std::span<const Column<evidence::CheckRow>> check_columns();

/// "prompt 0, layer 1, kv head 2", or the stream.
std::string subject_text(const evidence::CheckRow& row);

/// A result of a claim, or a claim without results.
struct ClaimRow {
  compare::PaperClaim claim;
  Verdict verdict = Verdict::untestable;
  std::optional<compare::RelationResult> result;
};

std::span<const Column<ClaimRow>> claim_columns();

/// One row per result; one row for a claim that is not tested.
std::string claims_table(const std::string& format, std::span<const compare::ClaimResult> claims);

}  // namespace kvbench::report
