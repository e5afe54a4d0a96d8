// SPDX-License-Identifier: Apache-2.0
// The parts of a report, one source file each.
#pragma once

#include <span>
#include <vector>

#include <kvbench/report/report.hpp>
#include <kvbench/report/report_input.hpp>

namespace kvbench {

/// Inputs: one row per file, trace, protocol, machine and program version.
DocTable provenance_table(std::span<const CsvTable> tables);

/// The heading (level 2), figures and tables of a section.
std::vector<Block> replay_blocks(const ReplaySection& section);

/// Bounds and claims with their verdicts.
std::vector<Block> check_blocks(std::span<const CsvTable* const> tables);

/// One figure per run, trace and measure.
std::vector<Block> measure_blocks(std::span<const CsvTable* const> tables);

/// Published numbers next to rows of replays, and next to means of measures over heads.
std::vector<Block> published_blocks(std::span<const Published> published, std::span<const CsvTable* const> replays,
                                    std::span<const CsvTable* const> measures);

}  // namespace kvbench
