// SPDX-License-Identifier: Apache-2.0
// Which methods change the output of the model least, and which cannot be told from the best.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/eval/damage_standing.hpp>
#include <kvbench/report/eval/prediction.hpp>
#include <kvbench/report/eval/sections.hpp>

namespace kvbench::report {

/// Sentences per task and budget, over rows with injection `all` that compressed the most layers, as
/// damage_standings() tests them. Methods are ranked by KL, over several texts by its geometric mean. Empty where no
/// task has two methods at one budget.
std::vector<std::string> damage_answers(std::span<const RowsOfText> texts);

/// The rows of a section as damage_answers() takes them.
RowsOfText rows_of(const EvalSection& section);

/// The sections of one model and setting on several texts.
struct TextsTogether {
  std::string scope;  ///< "MODEL on a.txt, b.txt together"
  std::vector<const EvalSection*> sections;

  std::vector<RowsOfText> rows() const;
};
/// Those with at least two texts.
std::vector<TextsTogether> texts_together(std::span<const EvalSection> sections);
/// The answers over all texts. No sentences where no task has two methods at one budget.
AnswerBlock answer_over_texts(const TextsTogether& texts, const Predictions& predictions);

}  // namespace kvbench::report
