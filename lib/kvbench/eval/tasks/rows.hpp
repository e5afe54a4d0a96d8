// SPDX-License-Identifier: Apache-2.0
// The tasks, a file each: its function makes the row of the task.
#pragma once

#include <kvbench/eval/tasks.hpp>

namespace kvbench::eval {

TaskInfo text_task();
TaskInfo passkey_task();
TaskInfo pairs_task();
TaskInfo lines_task();
TaskInfo multikey_task();
TaskInfo confusable_task();
TaskInfo multivalue_task();
TaskInfo tracking_task();
TaskInfo common_words_task();
TaskInfo rules_task();
TaskInfo json_task();

}  // namespace kvbench::eval
