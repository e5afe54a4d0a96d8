// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/eval/tasks.hpp>

namespace kvbench::eval {

TaskInfo multivalue_task();

}  // namespace kvbench::eval
