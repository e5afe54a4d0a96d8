// SPDX-License-Identifier: Apache-2.0
// Commands that are programs of their own: kveval, which links llama.cpp, kvbench-validate, and
// kvbench-bundle, kvbench-verify, kvbench-cite, kvbench-claim and kvbench-report of the Python package.
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

struct ProgramAnswer {
  std::string path;   ///< "" if there is no such program
  std::string fault;  ///< "ended with exit code 127", "gave no answer in 60 s"; "" if it did what it was asked
  std::string text;   ///< what it printed on both streams
};

/// Runs a program, beside kvbench or else in PATH, with these words and no input; after `seconds` it is killed.
ProgramAnswer ask_program(const std::string& program, const Words& words, int seconds);

struct OwnProgram {
  const char* program;
  const char* remedy;  ///< how to get it: a sentence
  /// prints the page of --help where there is no program; absent: that of the command's flags
  std::function<int()> help = {};
  /// runs the words that kvbench answers itself; absent for others
  std::function<std::optional<int>(const Words&)> answer = [](const Words&) { return std::nullopt; };
};

/// The command with these flags, which kvbench completes and describes, and does not parse. It becomes the program
/// beside kvbench, or else the one that PATH finds. Throws Error with the remedy where there is none.
Command own_command(CLI::App* flags, OwnProgram own);

/// Takes `--registered FILE` out of the words of a command: the file of a claim, "" where no value is given; nullopt
/// where they lack the flag.
std::optional<std::string> take_claim(Words& words);

/// Becomes the program that measures the claim of a file with the other words of the command of these flags.
int measure_claim(const CLI::App& flags, const std::string& file, Words words);

}  // namespace kvbench::app
