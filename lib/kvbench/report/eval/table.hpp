// SPDX-License-Identifier: Apache-2.0
// Rows of an evaluation of the model's output as text for readers.
#pragma once

#include <span>
#include <string>

#include <kvbench/eval/eval_record.hpp>

namespace kvbench::report {

/// The most important columns of the rows over all documents and layers, as Markdown and aligned for a terminal: by
/// task, in ascending order of KL for each budget.
std::string eval_markdown(std::span<const eval::EvalRecord> records);
std::string eval_terminal(std::span<const eval::EvalRecord> records);

}  // namespace kvbench::report
