// SPDX-License-Identifier: Apache-2.0
// Whether the damage of each configuration grows with the context, where rows of the same scored tokens are there at
// several lengths (kveval --context 512,1024,2048).
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/eval/growth.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/eval/sections.hpp>

namespace kvbench::report {

struct ConfigurationGrowth {
  const EvalRow* row = nullptr;  ///< one of its rows, which names it
  eval::Growth growth;
};

/// Of the rows of documents with injection `all` at two lengths or more, in order of appearance; documents are paired
/// by their names and scored tokens. Rows in which a configuration compressed fewer layers than in others are left out,
/// and so is the exact cache in fp32. Empty where no document is there at two lengths.
std::vector<ConfigurationGrowth> growths_of(std::span<const EvalRow* const> rows);

/// One sentence per configuration, and what does not count as growth.
std::vector<std::string> growth_answers(std::span<const ConfigurationGrowth> growths);

/// One line per configuration: KL at each length, the factor per doubling, the verdict. With what these mean, in at
/// most answer_lines; `rest` says how to see what is not shown.
std::vector<Block> brief_growth(std::span<const ConfigurationGrowth> growths, const std::string& rest);

/// A section for the sections of each model, text and setting that differ in the length alone, where growths_of() has
/// something to say; `longest` is the one with the longest context.
struct LengthSection {
  Section section;
  std::vector<const EvalSection*> lengths;
  const EvalSection* longest;
};
std::vector<LengthSection> length_sections(std::span<const EvalSection> evaluations);

}  // namespace kvbench::report
