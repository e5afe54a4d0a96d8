// SPDX-License-Identifier: Apache-2.0
// The commands of kvbench-validate: `validate`, which the program adds to its words, and `golden` below it.
#pragma once

#include <apps/common/rows/commands.hpp>

namespace kvbench::app {

Command add_validate(CLI::App& app);
Command add_golden(CLI::App& validate);

}  // namespace kvbench::app
