// SPDX-License-Identifier: Apache-2.0
// Many command lines in one process, so that a model is loaded once.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace kvbench::kveval {

/// Reads command lines from standard input and runs them one after the other. Each word ends with a NUL byte, an empty
/// word ends a command. After each command the line "done CODE" is written to standard output. `run` returns the exit
/// code, and throws nothing. Returns the exit code of the program: 0 at the end of the input, 130 after a signal, 2 if
/// the input ends inside a command.
int run_commands(const std::function<int(const std::vector<std::string>& words)>& run);

}  // namespace kvbench::kveval
