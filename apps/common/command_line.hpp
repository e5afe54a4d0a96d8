// SPDX-License-Identifier: Apache-2.0
// What the programs say about their command lines.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>

#include <apps/common/program.hpp>
#include <apps/common/slips.hpp>

namespace kvbench::app {

/// Accepts the numbers from `least` to `most`, which are finite; whole numbers where T is an integer.
template <class T>
CLI::Validator number_in(T least = std::numeric_limits<T>::lowest(), T most = std::numeric_limits<T>::max()) {
  const std::string range = most < std::numeric_limits<T>::max()       ? fmt::format(" from {} to {}", least, most)
                            : least > std::numeric_limits<T>::lowest() ? fmt::format(" of at least {}", least)
                                                                       : "";
  const auto check = [=](const std::string& given) {
    T number{};
    const auto [end, code] = std::from_chars(given.data(), given.data() + given.size(), number);
    const bool whole = code == std::errc{} && end == given.data() + given.size();
    if (whole && least <= number && number <= most) return std::string();  // false for NaN
    return fmt::format("'{}' is not a {}{}", given, std::integral<T> ? "whole number" : "number", range);
  };
  return {check, range.empty() ? range : range.substr(1)};
}

/// Accepts these names.
inline CLI::Validator one_of(std::vector<std::string> names) {
  std::string list = fmt::format("{{{}}}", fmt::join(names, ","));
  const auto check = [names = std::move(names)](const std::string& given) {
    if (std::ranges::find(names, given) != names.end()) return std::string();
    return fmt::format("'{}' is not one of {}.{}", given, fmt::join(names, ", "), did_you_mean(given, names));
  };
  return {check, std::move(list)};
}

/// Replaces a size such as 2G by its number of bytes.
inline CLI::Validator to_bytes() {
  return {[](std::string& given) {
            static const std::string units = "bkmgt";  // powers of 1024
            double number = 0;
            const auto [rest, code] = std::from_chars(given.data(), given.data() + given.size(), number);
            std::string unit = given.substr(static_cast<std::size_t>(rest - given.data()));
            std::ranges::transform(unit, unit.begin(), lower_case);
            const std::size_t power = unit.empty() ? 0 : units.find(unit[0]);
            const std::string ending = unit.substr(std::min<std::size_t>(1, unit.size()));
            const bool known = ending.empty() || (power > 0 && (ending == "b" || ending == "i" || ending == "ib"));
            const double bytes = power < units.size() ? number * std::exp2(10 * power) : 0;
            if (code != std::errc{} || !known || !(bytes >= 1 && bytes <= 0x1p60))
              return fmt::format("'{}' is not a size such as 2G, 512MiB or 1000000 (bytes)", given);
            given = fmt::format("{:.0f}", bytes);
            return std::string();
          },
          "SIZE"};
}

/// Adds an option whose value is one of these names.
template <class E>
CLI::Option* add_choice(CLI::App* flags, const char* name, E& value, const std::map<std::string, E>& names,
                        const char* text) {
  std::vector<std::string> known;
  for (const auto& [key, meaning] : names) known.push_back(key);
  const CLI::Validator to_number(
      [names](std::string& given) {
        given = std::to_string(static_cast<int>(names.at(given)));
        return std::string();
      },
      "");
  // CLI11 applies the last transformation first.
  return flags->add_option(name, value, text)->transform(to_number)->transform(one_of(known))->type_name("TEXT");
}

/// The same fault as CLI11's message in a sentence, where its message is none.
inline std::string in_words(const CLI::ParseError& error) {
  const std::string message = error.what(), name = message.substr(0, message.find(':'));
  if (const std::size_t value = message.find(" = "); name == "Could not convert" && value != message.npos)
    return fmt::format("{} takes no value", message.substr(name.size() + 2, value - name.size() - 2));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr || name == message) return message;
  return message.find("At Most") == message.npos ? name + " needs a value"
                                                 : name + " is given twice; it takes one value";
}

/// The subcommands that have a flag, as in "kvbench compare".
inline std::vector<std::string> commands_with(const CLI::App& app, const std::string& flag) {
  std::vector<std::string> found;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_option_no_throw(flag) != nullptr) found.push_back(app.get_name() + " " + command->get_name());
  }
  return found;
}

/// The complaint about a flag that does not exist.
inline std::string unknown_flag(const CLI::App& app, const std::string& name) {
  const auto commands = app.get_subcommands();
  const CLI::App& parsed = commands.empty() ? app : *commands.front();
  const auto has = [&](const std::string& flag) { return parsed.get_option_no_throw(flag) != nullptr; };
  if (!commands.empty() && has(name))
    return fmt::format("{0} stands before the command; write it behind, as in {1} {2} {0}", name, app.get_name(),
                       parsed.get_name());
  std::string remedy = right_word(name, has);
  std::vector<std::string> known;
  for (const CLI::Option* option : parsed.get_options()) {
    for (const std::string& own : option->get_lnames()) known.push_back("--" + own);
  }
  const std::vector<std::string> others = commands_with(app, name);
  const std::string nearest = nearest_name(name, known);
  const bool near = !nearest.empty() && (name.starts_with(nearest) || nearest.starts_with(name));
  if (remedy.empty() && !others.empty() && !near) remedy = fmt::format(" It is a flag of {}.", fmt::join(others, ", "));
  if (remedy.empty()) remedy = did_you_mean(name, known);
  return fmt::format("there is no flag {}.{}", name, remedy);
}

/// How a word that has no place is written as a flag, or "".
inline std::string as_a_flag(const CLI::App& parsed, const std::string& word) {
  const auto has = [&](const std::string& flag) { return parsed.get_option_no_throw(flag) != nullptr; };
  const auto files = parsed.get_options([](const CLI::Option* option) { return option->get_positional(); });
  if (has("--" + word)) return "; write --" + word;
  const CLI::Option* summary = parsed.get_option_no_throw("--summary");
  if (summary != nullptr && summary->get_description().find("=" + word + ":") != std::string::npos)
    return "; write --summary=" + word;
  return files.empty() && word.ends_with(".h5") && has("--output") ? "; write -o " + word : "";
}

/// The message of a failed parse. Unknown flags and subcommands come first, with the nearest name: what is missing is
/// often what they were meant to be.
inline std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  const auto commands = app.get_subcommands();
  const std::vector<std::string> unknown = app.remaining(true);
  const auto flag = std::ranges::find_if(unknown, [](const std::string& text) { return text.starts_with('-'); });
  if (flag != unknown.end()) return unknown_flag(app, flag->substr(0, flag->find('=')));
  if (unknown.empty()) return in_words(error);
  const auto has_none = [&](const std::string& name) {
    const CLI::App& parsed = commands.empty() ? app : *commands.front();
    return fmt::format("'{}' has no place in {}{}", unknown.front(), name, as_a_flag(parsed, unknown.front()));
  };
  if (!commands.empty()) return has_none(app.get_name() + " " + commands.front()->get_name());
  std::vector<std::string> known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    known.push_back(command->get_name());
  if (known.empty()) return has_none(app.get_name());
  const auto has = [&](const std::string& name) { return std::ranges::find(known, name) != known.end(); };
  const std::string right = right_word(unknown.front(), has);
  return fmt::format("there is no command {}.{}", unknown.front(),
                     right.empty() ? did_you_mean(unknown.front(), known) : right);
}

/// Lets each occurrence of a flag take one value, so that lists do not swallow what stands behind them, such as the
/// trace.
inline void take_one_value_each(CLI::App& flags) {
  for (CLI::Option* option : flags.get_options([](const CLI::Option* o) { return !o->get_positional(); }))
    option->allow_extra_args(false);
}

/// The words as CLI11 parses them, last first. A short flag may have its value behind an equals sign as well: -o=FILE.
inline std::vector<std::string> as_parsed(const std::vector<std::string>& words) {
  std::vector<std::string> parsed;
  for (const std::string& word : words) {
    const bool both = word.size() > 2 && word[0] == '-' && word[1] != '-' && word[2] == '=';
    parsed.push_back(both ? word.substr(0, 2) : word);
    if (both) parsed.push_back(word.substr(3));
  }
  std::ranges::reverse(parsed);
  return parsed;
}

/// "-o,--output"
inline std::string name_of(const CLI::Option& option) { return option.get_name(false, true); }

/// Throws Error where an option was given an empty text, which means nothing.
inline void refuse_empty_values(const CLI::App& flags) {
  for (const CLI::Option* option : flags.get_options()) {
    if (std::ranges::count(option->results(), "") > 0)
      throw Error("{}: the value is empty; give one, or leave the flag out", name_of(*option));
  }
}

/// Throws Error with the reason where one of the options, which would have no effect, was given.
inline void refuse_without_effect(const CLI::App& flags, const std::vector<std::string>& names,
                                  std::string_view reason) {
  for (const std::string& name : names) {
    if (flags.count(name) > 0) throw Error("{} has no effect {}", name, reason);
  }
}

/// Says on stderr which of the options, which have no effect and do no harm, were given: those that change how results
/// are computed or shown, not which. Throws IoError.
inline void note_without_effect(const CLI::App& flags, const std::vector<std::string>& names, std::string_view reason) {
  const CLI::App* program = &flags;
  while (program->get_parent() != nullptr) program = program->get_parent();
  for (const std::string& name : names) {
    if (flags.count(name) > 0) say(program->get_name(), fmt::format("{} has no effect {}", name, reason));
  }
}

/// For a flag that prints a page and ends the program: throws Error where another option was given, except `form`, or
/// what no option takes.
inline void require_alone(const CLI::App& flags, const std::string& page, const std::string& form = "") {
  if (const auto others = flags.remaining(true); !others.empty())
    throw Error("{} has no effect beside {}, which prints a page and ends; leave it out", others.front(), page);
  for (const CLI::Option* option : flags.get_options()) {
    if (option->count() == 0 || option->check_name(page) || (!form.empty() && option->check_name(form))) continue;
    throw Error("{} has no effect beside {}, which prints a page and ends; leave it out", name_of(*option), page);
  }
}

/// Prints what --help or --version asked for on stdout. Throws IoError. Returns the exit code.
inline int print_answer(const CLI::App& app, const CLI::Error& asked) {
  std::ostringstream text;
  const int code = app.exit(asked, text, text);
  print(text.str());
  return code;
}

}  // namespace kvbench::app
