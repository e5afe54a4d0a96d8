// SPDX-License-Identifier: Apache-2.0
// A section of an evaluation of the model's output.
#pragma once

#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/eval/prediction.hpp>

namespace kvbench::report {

/// The first sentences of the report: which attention metric predicts damage best, and how well.
AnswerBlock eval_answer(const EvalSection& section, const Predictions& predictions);
/// The heading (level 2), figures and tables of a section.
std::vector<Block> eval_blocks(const EvalSection& section, const Predictions& predictions);

}  // namespace kvbench::report
