// SPDX-License-Identifier: Apache-2.0
// Which methods change the output of the model least, and which cannot be told from the best.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/eval/eval_record.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/eval/sections.hpp>

namespace kvbench::report {

/// The rows of one text: over all documents, and one per document where the evaluation wrote them.
using RowsOfText = std::vector<const eval::EvalRecord*>;

/// Sentences per task and budget, over rows with injection `all` that compressed the most layers. Methods are ranked by
/// KL, over several texts by its geometric mean. Each is tested against the best by the logarithm of the ratio of their
/// KL on each document (Student's t over the documents of all texts, Holm over the comparisons at 5 %); with
/// fewer than three documents, or without rows per document, nothing is tested. Empty where no task has two methods at
/// one budget. References and `random` are not ranked.
std::vector<std::string> damage_answers(std::span<const RowsOfText> texts);

/// The rows of a section as damage_answers() takes them.
RowsOfText rows_of(const EvalSection& section);

/// One block of answers over all texts for each model and setting that was evaluated on several texts.
std::vector<AnswerBlock> answers_over_texts(std::span<const EvalSection> sections);

}  // namespace kvbench::report
