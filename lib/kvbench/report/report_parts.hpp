// SPDX-License-Identifier: Apache-2.0
// The parts of a report, one source file each.
#pragma once

#include <span>
#include <vector>

#include <kvbench/report/report.hpp>
#include <kvbench/report/report_input.hpp>

namespace kvbench {

/// What was run on what: one row a file and configuration of trace, protocol, machine and program.
DocTable provenance_table(std::span<const CsvTable> tables);

/// A heading of level 2 a section, its figures and its tables.
std::vector<Block> replay_blocks(const ReplaySection& section);

/// Bounds and claims with their verdicts.
std::vector<Block> check_blocks(std::span<const CsvTable* const> tables);

/// One figure a run, trace and measure.
std::vector<Block> measure_blocks(std::span<const CsvTable* const> tables);

/// What papers print beside rows of replays, and beside means over heads of measures.
std::vector<Block> published_blocks(std::span<const Published> published, std::span<const CsvTable* const> replays,
                                    std::span<const CsvTable* const> measures);

}  // namespace kvbench
