// SPDX-License-Identifier: Apache-2.0
// The columns of the rows of kveval.
#pragma once

#include <span>

#include <kvbench/eval/eval_record.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

std::span<const Column<eval::EvalRecord>> eval_columns();

}  // namespace kvbench::report
