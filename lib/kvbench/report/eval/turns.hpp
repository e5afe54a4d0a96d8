// SPDX-License-Identifier: Apache-2.0
// Whether the last turn of conversations is worse than the first, where rows have turns (kveval --transcripts).
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include <kvbench/eval/growth.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/eval/sections.hpp>

namespace kvbench::report {

/// A configuration under one rule of when the cache is compressed.
struct ConfigurationTurns {
  const EvalRow* row = nullptr;        ///< one of its rows, which names it
  std::map<Index, eval::Estimate> kl;  ///< by turn: geometric mean over the conversations that have it
  Index first = 0, last = 0;           ///< turns that all conversations have
  eval::Growth change;                 ///< its factor: KL of the last turn over that of the first
  eval::Growth again;  ///< KL of the last turn over that of a cache compressed anew there; no factor without such rows
};

/// Of the rows of conversations and turns with injection `all`, in order of appearance. Conversations are paired by
/// their names and tokens. Rows in which a configuration compressed fewer layers than in others are left out.
std::vector<ConfigurationTurns> turns_of(std::span<const EvalRow* const> rows);

/// One sentence per configuration.
std::vector<std::string> turn_answers(std::span<const ConfigurationTurns> turns);
/// One line per configuration: KL of turns, the last beside the first and beside one compressed anew, the verdict.
DocTable turn_table(std::span<const ConfigurationTurns> turns);
/// turn_table() with what its columns mean, in at most answer_lines; `rest` says how to see what is not shown.
std::vector<Block> brief_turns(std::span<const ConfigurationTurns> turns, const std::string& rest);

/// A section for the sections of each model, file and setting that differ in when caches are compressed alone.
std::vector<Section> turn_sections(std::span<const EvalSection> evaluations);

}  // namespace kvbench::report
