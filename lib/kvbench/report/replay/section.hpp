// SPDX-License-Identifier: Apache-2.0
// A section of a replay or sweep: one figure and the table of one budget; folded: all others, the figures by layer,
// head and query, averages over texts, and the reasons of rows without results.
#pragma once

#include <string>
#include <vector>

#include <kvbench/compare/query_results.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/replay/sections.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench::report {

/// Files beside the tables, which add figures of single queries.
struct QueryFiles {
  std::vector<const compare::QueryResults*> raw;  ///< raw results, opened for rel_err
  std::vector<const trace::Reader*> traces;       ///< with raw results: add maps of attention and kept tokens
};

/// What the rows of a section answer, at one budget of each kind; the answers and what they cost first.
std::vector<AnswerBlock> main_answers(const ReplaySection& section);

/// The blocks of a section, from its heading (level 2) on. `said`: sentences that the report has made, which are not
/// repeated.
std::vector<Block> replay_blocks(const ReplaySection& section, const QueryFiles& files,
                                 const std::vector<std::string>& said);

}  // namespace kvbench::report
