// SPDX-License-Identifier: Apache-2.0
// The columns of the rows of a replay.
#pragma once

#include <span>

#include <kvbench/replay/records/record.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

std::span<const Column<replay::Record>> record_columns();

}  // namespace kvbench::report
