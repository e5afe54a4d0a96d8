// SPDX-License-Identifier: Apache-2.0
// What the programs say about their command lines.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <kvbench/core/suggest.hpp>

namespace kvbench::app {

/// Adds an option whose value is one of these names.
template <class E>
CLI::Option* add_choice(CLI::App* flags, const char* name, E& value, const std::map<std::string, E>& names, const char* text) {
  std::vector<std::string> known;
  for (const auto& [key, meaning] : names) known.push_back(key);
  const CLI::Validator to_number(
      [names, known](std::string& given) {
        const auto found = names.find(given);
        if (found == names.end()) {
          return fmt::format("'{}' is not one of {}.{}", given, fmt::join(known, ", "), did_you_mean(given, known));
        }
        given = std::to_string(static_cast<int>(found->second));
        return std::string();
      },
      fmt::format("{{{}}}", fmt::join(known, ",")));
  return flags->add_option(name, value, text)->transform(to_number)->type_name("TEXT");
}

/// The message of a failed parse. Unknown flags and subcommands come first, with the nearest name: what is missing is often what they
/// were meant to be.
inline std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  const auto commands = app.get_subcommands();
  const CLI::App& parsed = commands.empty() ? app : *commands.front();
  const std::vector<std::string> unknown = app.remaining(true);
  std::vector<std::string> known;
  const auto flag = std::ranges::find_if(unknown, [](const std::string& text) { return text.starts_with('-'); });
  if (flag != unknown.end()) {
    for (const CLI::Option* option : parsed.get_options()) {
      for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    const std::string name = flag->substr(0, flag->find('='));
    return fmt::format("there is no flag {}.{}", name, did_you_mean(name, known));
  }
  if (commands.empty() && !unknown.empty()) {
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
      known.push_back(command->get_name());
    if (!known.empty()) return fmt::format("there is no command {}.{}", unknown.front(), did_you_mean(unknown.front(), known));
  }
  return error.what();
}

}  // namespace kvbench::app
