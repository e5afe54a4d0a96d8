// SPDX-License-Identifier: Apache-2.0
// A section of an evaluation of the model's output.
#pragma once

#include <string>
#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/eval/prediction.hpp>

namespace kvbench::report {

/// Which methods change the output least, then which attention metric predicts damage best, and how well.
AnswerBlock eval_answer(const EvalSection& section, const Predictions& predictions);
/// The blocks of a section, from its heading (level 2) on: one figure and the table of one task and budget; the others
/// folded. `said`: sentences that the report has made, which are not repeated.
std::vector<Block> eval_blocks(const EvalSection& section, const Predictions& predictions,
                               const std::vector<std::string>& said);

}  // namespace kvbench::report
