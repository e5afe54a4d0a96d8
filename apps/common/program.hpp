// SPDX-License-Identifier: Apache-2.0
// What a program does before and after its work: standard streams, exit codes, the message that explains a failure.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace kvbench::app {

/// As documented in README.md and --help.
enum ExitCode { done = 0, rows_failed = 1, no_answer = 1, bad_input = 2, machine_failed = 3, was_interrupted = 130 };

struct Program {
  const char* name;
  const char* nothing_written = "no output was written";  ///< after "interrupted; "
  const char* out_of_memory;                              ///< the remedy
  /// The message with flags in place of the fields of requests that it names.
  std::function<std::string(const std::string& message)> words = [](const std::string& message) { return message; };
};

/// Runs `body`, which returns an exit code, and turns what it throws into a message on stderr and an exit code. Where
/// stdout or stderr is closed, `body` is not run; there, and where a message cannot be written, the exit code is
/// machine_failed. The program's outputs then replace
/// no file that it has read (core/output_path.hpp).
int run_program(const Program& program, const std::function<int()>& body);

/// Prints on stdout. Throws IoError where it cannot be written.
void print(std::string_view text);

/// Prints "PROGRAM: TEXT" on stderr. Throws IoError where it cannot be written: a program whose user cannot learn what
/// went wrong must not end as a success.
void say(std::string_view program, std::string_view text);

/// Writes text as it is to stderr, if possible: what a terminal shows of a run's progress, and last words. Returns
/// whether it was written.
bool try_to_show(std::string_view text) noexcept;

}  // namespace kvbench::app
