// SPDX-License-Identifier: Apache-2.0
// Rows of an evaluation of the model's output as a table of their most important columns.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/eval/eval_record.hpp>
#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// The most important columns of the rows over all documents and layers: by task, in ascending order of KL for each
/// budget.
DocTable overall_table(std::span<const eval::EvalRecord> records);

/// At most answer_lines: the answers, the rows of the first task and budget with the lowest KL, and how many rows are
/// not shown, which `rest` says how to see. `answers`: damage_answers().
std::vector<Block> brief_evaluation(const std::vector<std::string>& answers, std::span<const eval::EvalRecord> records,
                                    const std::string& rest);

}  // namespace kvbench::report
