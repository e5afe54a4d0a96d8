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

#include <apps/common/complaints.hpp>
#include <apps/common/program.hpp>

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

/// Lets each occurrence of a flag take one value, so that lists do not swallow what stands behind them, such as the
/// trace.
inline void take_one_value_each(CLI::App& flags) {
  for (CLI::Option* option : flags.get_options([](const CLI::Option* o) { return !o->get_positional(); }))
    option->allow_extra_args(false);
}

/// "-o,--output"
inline std::string name_of(const CLI::Option& option) { return option.get_name(false, true); }

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

/// For a flag that prints a page and ends the program: throws Error where another option was given, except those that
/// change the page, or what no option takes.
inline void require_alone(const CLI::App& flags, const std::string& page, const std::vector<std::string>& beside = {}) {
  if (const auto others = flags.remaining(true); !others.empty())
    throw Error("{} has no effect beside {}, which prints a page and ends; leave it out", others.front(), page);
  for (const CLI::Option* option : flags.get_options()) {
    const auto is = [&](const std::string& name) { return option->check_name(name); };
    if (option->count() == 0 || is(page) || std::ranges::any_of(beside, is)) continue;
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
