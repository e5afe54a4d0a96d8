// SPDX-License-Identifier: Apache-2.0
// A program of commands, such as kvbench: what it does with the words of its command line.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <apps/common/program.hpp>

namespace kvbench::app {

using Words = std::vector<std::string>;

struct Command {
  CLI::App* flags;
  std::function<int()> run;  ///< returns the exit code
  /// of a command that is a program of its own: runs it with the words behind the command, which are not parsed here;
  /// nullopt: the words are those of `run`
  std::function<std::optional<int>(const Words&)> start = {};
};

/// The paragraph of a help page.
extern const char* const exit_codes;

/// Puts the examples, which begin with the name of the command, and the exit codes below the help of a command; between
/// them what its footer says beside that of its parent.
void add_examples(CLI::App& command, const std::vector<const char*>& lines);

/// Parses the words and runs the command that they name: the first one of those that were parsed, so that a command
/// within another stands before it. `given` is the name of the command as soon as it is known, for messages. Returns
/// the exit code. Throws Error.
int run_words(CLI::App& app, std::span<const Command> commands, const Words& words, std::string& given);

/// The frame of such a program: memory, stop signals, streams, exit codes. `body` is run_words() of an application; its
/// argument becomes the name of the command.
int run_commands(const std::function<int(std::string& given)>& body);

}  // namespace kvbench::app
