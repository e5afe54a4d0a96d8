// SPDX-License-Identifier: Apache-2.0
// The parts of a report, one source file each.
#pragma once

#include <span>
#include <vector>

#include <kvbench/report/claim_table.hpp>
#include <kvbench/report/report.hpp>
#include <kvbench/report/report_input.hpp>

namespace kvbench {

/// Inputs: one row per file, trace, protocol, machine and program version.
DocTable provenance_table(std::span<const CsvTable> tables);

/// What the rows of a section answer, at one budget of each kind.
std::vector<AnswerBlock> main_answers(const ReplaySection& section);

/// The heading (level 2), figures and tables of a section.
std::vector<Block> replay_blocks(const ReplaySection& section, const ReportOptions& options);

/// Bounds and claims with their verdicts.
std::vector<Block> check_blocks(std::span<const CsvTable* const> tables);

/// One figure per run, trace and measure.
std::vector<Block> measure_blocks(std::span<const CsvTable* const> tables);

/// The tables of a report by kind.
struct ReportTables {
  std::vector<const CsvTable*> replays, checks, measures, claims, evaluations;
  std::vector<const CsvTable*>& of(TableKind kind) {
    std::vector<const CsvTable*>* const all[] = {&replays, &checks, &measures, &claims, &evaluations};
    return *all[static_cast<std::size_t>(kind)];
  }
};

/// The claims with their verdicts and tests; published numbers next to rows of replays, and next to means of measures over heads.
std::vector<Block> published_blocks(std::span<const Published> published, const ReportTables& tables);

/// The metric of a claim, and the ratio of its two sides, against the budget: one drawing per place.
std::vector<Block> claim_figures(const ClaimResult& claim);

}  // namespace kvbench
