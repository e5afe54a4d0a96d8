// SPDX-License-Identifier: Apache-2.0
// Commands that are programs of their own: kveval, which links llama.cpp, kvbench-validate, and
// kvbench-bundle, kvbench-verify, kvbench-cite and kvbench-claim of the Python package.
#pragma once

#include <functional>
#include <optional>

#include <apps/kvbench/commands.hpp>

namespace kvbench::app {

struct OwnProgram {
  const char* program;
  const char* remedy;         ///< how to get it: a sentence
  std::function<int()> help;  ///< prints the page of --help where there is no program
  /// runs the words that kvbench answers itself; absent for others
  std::function<std::optional<int>(const Words&)> answer = [](const Words&) { return std::nullopt; };
};

/// The command with these flags, which kvbench completes and describes, and does not parse. It becomes the program
/// beside kvbench, or else the one that PATH finds. Throws Error with the remedy where there is none.
Command own_command(CLI::App* flags, OwnProgram own);

}  // namespace kvbench::app
