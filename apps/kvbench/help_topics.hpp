// SPDX-License-Identifier: Apache-2.0
// What `kvbench help TOPIC` shows beside commands.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace kvbench::app {

/// Programs whose flags kvbench does not know, and reads from the page of their help.
inline constexpr const char* programs_with_help[] = {"kvdump",         "kvbench-choose", "kvbench-dump-hf",
                                                     "kvbench-bundle", "kvbench-verify", "kvbench-cite",
                                                     "kvbench-claim",  "kvbench-report"};

struct Described {
  std::string name;  ///< "replay", "validate golden"
  const CLI::App* flags;
};
/// The commands of kvbench with their flags, each with those below it. They live as long as `app`.
std::vector<Described> described_commands(const CLI::App& app, const std::string& above = "");

/// Topics that are pages of a command, such as "columns".
std::vector<std::string> help_topics();

/// Methods, wrappers, compositions A+Q of the set `families`, and the sets that stand for several. No word has
/// brackets, which a shell would read itself.
std::vector<std::string> method_words();

/// " Did you mean 'snapkv'?", of all that `kvbench help` explains; "" where nothing is like the word.
std::string near_topics(const CLI::App& app, const std::string& word);

/// The arguments that print what `kvbench help TOPIC` asks for: a page of a command, a method or a set of methods;
/// empty for other words.
std::vector<std::string> arguments_of_topic(const std::string& topic);

/// What each command says about a flag, "--budget", "-b", "budget" or "budgets"; "" where none has it.
std::string flag_page(const CLI::App& app, const std::string& word);

}  // namespace kvbench::app
