// SPDX-License-Identifier: Apache-2.0
// What the programs say about words of a command line that they cannot read.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace kvbench::app {

/// What a program knows of a flag that its command `parsed` lacks: " Write ..." or "". `value` is the word behind the
/// flag, "" where there is none.
using FlagAdvice =
    std::function<std::string(const CLI::App& parsed, const std::string& flag, const std::string& value)>;

/// "kvbench validate golden": the program, and the commands down to this one.
std::string full_name(const CLI::App& command);

/// The words as CLI11 parses them, last first. A short flag may have its value behind an equals sign as well: -o=FILE.
/// CLI11 takes the next word for the value of --flag= alone, whose value is empty. Words behind -- are files, also if
/// they begin with a dash. `help` alone is --help, unless there are commands. Throws Error if a flag that takes no
/// value has one (`-q=yes`), or if one that may be left out is empty (`--summary=`).
std::vector<std::string> as_parsed(const CLI::App& app, const std::vector<std::string>& words);

/// The message of a failed parse of `words`. It names, in this order: a command that does not exist, whose flags nobody
/// can judge; a flag without a value, or a list with spaces between its values; unknown flags and words, with the
/// nearest name, because what is missing is often what they were meant to be.
std::string complaint(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words,
                      const FlagAdvice& advice = {});

/// Throws Error where the words of the command `flags`, which are parsed, have a flag without a value (`-m -o FILE`), a
/// list with spaces (`-m snapkv h2o`: a flag takes one value, and CLI11 takes the others for files; the message has the
/// list as it is written), or an empty value.
void check_values(const CLI::App& flags, const std::vector<std::string>& words);

}  // namespace kvbench::app
