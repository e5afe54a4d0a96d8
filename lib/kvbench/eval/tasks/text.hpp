// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/eval/tasks.hpp>

namespace kvbench::eval {

TaskInfo text_task();

}  // namespace kvbench::eval
