// SPDX-License-Identifier: Apache-2.0
// The columns of the rows of kveval.
#pragma once

#include <span>
#include <string>

#include <kvbench/eval/eval_record.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

std::span<const Column<eval::EvalRecord>> eval_columns();

/// RFC 4180 quoting, LF, one header line.
std::string eval_csv(std::span<const eval::EvalRecord> records, bool times);

}  // namespace kvbench::report
