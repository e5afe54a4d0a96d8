// SPDX-License-Identifier: Apache-2.0
// Commands that are programs of their own: kveval, which links llama.cpp, kvbench-validate, and
// kvbench-bundle and kvbench-verify of the Python package.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <apps/kvbench/commands.hpp>

namespace kvbench::app {

/// How to get the programs that are not there: sentences.
extern const char* const llama_remedy;       // kveval, kvdump
extern const char* const laboratory_remedy;  // kvbench-validate
extern const char* const package_remedy;     // kvbench-bundle, kvbench-verify

/// The path of a program: beside kvbench, or else in PATH; "" if there is none that may be started.
std::string path_of_program(const std::string& program);

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
