// SPDX-License-Identifier: Apache-2.0
// A section of a replay or sweep: answers, figures, the table of methods, rows without results, notes, and all columns.
#pragma once

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

/// What the rows of a section answer, at one budget of each kind.
std::vector<AnswerBlock> main_answers(const ReplaySection& section);

/// The heading (level 2), answers, figures and tables of a section. `answers`: also those that are all main_answers().
std::vector<Block> replay_blocks(const ReplaySection& section, const QueryFiles& files, bool answers);

}  // namespace kvbench::report
