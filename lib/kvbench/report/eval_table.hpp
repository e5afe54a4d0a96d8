// SPDX-License-Identifier: Apache-2.0
// The rows of an evaluation of the model's output (kveval) as text. Columns are declared once.
#pragma once

#include <span>
#include <string>

#include <kvbench/eval/eval_record.hpp>
#include <kvbench/report/column.hpp>

namespace kvbench {

std::span<const Column<EvalRecord>> eval_columns();

/// RFC 4180 quoting, LF, one header line.
std::string eval_csv(std::span<const EvalRecord> records, bool times);

/// The most important columns of the rows over all documents and layers, as Markdown and aligned for a terminal: by task, in
/// ascending order of KL for each budget.
std::string eval_markdown(std::span<const EvalRecord> records);
std::string eval_terminal(std::span<const EvalRecord> records);

}  // namespace kvbench
