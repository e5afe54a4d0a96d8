// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/eval/tasks.hpp>

namespace kvbench::eval {

TaskInfo lines_task();

}  // namespace kvbench::eval
