// SPDX-License-Identifier: Apache-2.0
#include <apps/common/complaints.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <span>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/name.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/slips.hpp>

namespace kvbench::app {
namespace {

/// The same fault as CLI11's message in a sentence, where its message is none.
std::string in_words(const CLI::ParseError& error) {
  const std::string message = error.what(), name = message.substr(0, message.find(':'));
  if (const std::size_t value = message.find(" = "); name == "Could not convert" && value != message.npos)
    return fmt::format("{}: '{}' is not a number that it takes",
                       message.substr(name.size() + 2, value - name.size() - 2), message.substr(value + 3));
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) == nullptr || name == message) return message;
  return message.find("At Most") == message.npos ? name + " needs a value"
                                                 : name + " is given twice; it takes one value";
}

bool is_flag(const std::string& word) { return word.starts_with('-'); }

bool exists(const std::string& path) {
  std::error_code unknown;  // what cannot be looked at is a file, and its reader says what is wrong
  return std::filesystem::exists(path, unknown) || unknown;
}

/// Whether a word looks like the name of a file: its ending is as short as .h5 or .cells.
bool like_file(const std::string& word) {
  constexpr std::size_t longest = 5;
  if (exists(word)) return true;
  const std::size_t dot = word.rfind('.');
  if (dot == word.npos || word.find(':') != word.npos) return false;
  const std::string ending = word.substr(dot + 1);
  const auto letter = [](char c) { return lower_case(c) >= 'a' && lower_case(c) <= 'z'; };
  const auto letter_or_digit = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  const bool plain = std::ranges::all_of(ending, letter_or_digit);
  return plain && !ending.empty() && ending.size() <= longest && letter(ending[0]);
}

/// The innermost subcommand that was given, else the program.
const CLI::App& parsed_of(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : parsed_of(*commands.front());
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

/// The subcommands that have a flag, as in "kvbench compare".
std::vector<std::string> commands_with(const CLI::App& app, const std::string& flag) {
  std::vector<std::string> found;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_option_no_throw(flag) != nullptr) found.push_back(full_name(*command));
    std::ranges::move(commands_with(*command, flag), std::back_inserter(found));
  }
  return found;
}

/// The word behind a flag, or what follows its equals sign; "" where there is none.
std::string value_of(const std::string& flag, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].starts_with(flag + "=")) return words[i].substr(flag.size() + 1);
    if (words[i] == flag) return i + 1 < words.size() && !is_flag(words[i + 1]) ? words[i + 1] : "";
  }
  return "";
}

/// The complaint about a flag that does not exist.
std::string unknown_flag(const CLI::App& app, const std::string& name, const std::vector<std::string>& words,
                         const FlagAdvice& advice) {
  const CLI::App& parsed = parsed_of(app);
  const auto has = [&](const std::string& flag) { return parsed.get_option_no_throw(flag) != nullptr; };
  if (&parsed != &app && has(name))
    return fmt::format("{0} stands before the command; write it behind, as in {1} {0}", name, full_name(parsed));
  std::string remedy = right_word(name, has) + (advice ? advice(parsed, name, value_of(name, words)) : "");
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
std::string as_a_flag(const CLI::App& parsed, const std::string& word) {
  const auto has = [&](const std::string& flag) { return parsed.get_option_no_throw(flag) != nullptr; };
  const auto files = parsed.get_options([](const CLI::Option* option) { return option->get_positional(); });
  if (has("--" + word)) return "; write --" + word;
  const CLI::Option* summary = parsed.get_option_no_throw("--summary");
  if (summary != nullptr && summary->get_description().find("=" + word + ":") != std::string::npos)
    return "; write --summary=" + word;
  return files.empty() && word.ends_with(".h5") && has("--output") ? "; write -o " + word : "";
}

/// A flag with a list whose values stand in several words.
struct SpacedList {
  std::string flag;                 ///< as it was written
  std::vector<std::string> values;  ///< the words; empty: there is no such list
};

bool takes_list(const CLI::Option& option) {
  return !option.get_positional() && (option.get_items_expected_max() > 1 || option.get_type_name() == "LIST");
}

/// The first list behind the name of the command with a second value. What looks like a file is none, unless it has no
/// place behind another file.
SpacedList spaced_list(const CLI::App& flags, const std::vector<std::string>& words) {
  const std::vector<std::string> placeless = flags.remaining(true);
  const auto goes_on = [&](const SpacedList& list, const std::string& word) {
    if (is_flag(word)) return false;
    const bool has_place = std::ranges::find(placeless, word) == placeless.end();
    return !like_file(word) || (!has_place && like_file(list.values.front()));
  };
  const std::size_t command = std::ranges::find(words, flags.get_name()) - words.begin();
  for (std::size_t i = command < words.size() ? command + 1 : 0; i < words.size(); ++i) {
    if (!is_flag(words[i])) continue;
    const std::size_t equals = words[i].find('=');
    SpacedList list{words[i].substr(0, equals), {}};
    const CLI::Option* option = flags.get_option_no_throw(list.flag);
    if (option == nullptr || !takes_list(*option)) continue;
    if (equals != std::string::npos)
      list.values.push_back(words[i].substr(equals + 1));
    else if (++i < words.size())
      list.values.push_back(words[i]);
    while (i + 1 < words.size() && !list.values.empty() && goes_on(list, words[i + 1]))
      list.values.push_back(words[++i]);
    if (list.values.size() > 1) return list;
  }
  return {};
}

/// The list as one value: "snapkv,h2o" of "snapkv," and "h2o", and "25%mem" of "25" and "%mem".
std::string joined(const SpacedList& list) {
  std::string all;
  for (const std::string& value : list.values) {
    const std::size_t begin = value.find_first_not_of(','), end = value.find_last_not_of(',');
    if (begin == value.npos) continue;
    const bool goes_on = all.empty() || value[begin] == '%' || value[begin] == '+' || all.ends_with('+');
    all += (goes_on ? "" : ",") + value.substr(begin, end + 1 - begin);
  }
  return all;
}

/// "-m snapkv,h2o"; flags of files, and of settings such as h2o.heavy=1, are repeated.
std::string written(const SpacedList& list) {
  const std::string all = joined(list);
  const bool settings = all.find('=') != all.npos && all.find_first_of("[({") == all.npos;
  if (settings || std::ranges::any_of(list.values, like_file)) {
    const std::string between = fmt::format(" {} ", list.flag);
    return list.flag + " " + fmt::format("{}", fmt::join(list.values, between));
  }
  const char* quote = all.find_first_of("[](){}*;&|<>$ ") == all.npos ? "" : "\"";
  return fmt::format("{} {}{}{}", list.flag, quote, all, quote);
}

/// The complaint about such a list; "" where there is none.
std::string about_spaced_list(const CLI::App& flags, const std::vector<std::string>& words) {
  const SpacedList list = spaced_list(flags, words);
  if (list.values.empty()) return "";
  if (like_file(list.values[1]))
    return fmt::format("'{}' has no place behind {} {}; write {}", list.values[1], list.flag, list.values[0],
                       written(list));
  return fmt::format("there is no file '{}'; as a value of {}, write {}", list.values[1], list.flag, written(list));
}

/// The complaint about a flag whose value is left out, so that it would take the next flag for it; "" where there is
/// none. CLI11 takes any word for a value; who means such a text writes --flag=-o.
std::string about_left_out_value(const CLI::App& flags, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const CLI::Option* option = is_flag(words[i]) ? flags.get_option_no_throw(words[i]) : nullptr;
    if (option == nullptr || option->get_items_expected_min() == 0) continue;
    const std::string& next = words[i + 1];
    const bool short_flag = next.size() > 1 && is_flag(next) && flags.get_option_no_throw(next.substr(0, 2)) != nullptr;
    if (short_flag || next.starts_with("--"))
      return fmt::format("{} needs a value; {} behind it is a flag", words[i], next);
    ++i;
  }
  return "";
}

/// The first complaint about values of flags; "" where there is none. Words behind -- are no flags.
std::string about_values(const CLI::App& flags, std::vector<std::string> words) {
  const auto mark = std::ranges::find(words, "--");
  if (mark != words.end()) words.erase(mark + 1, words.end());
  const std::string left_out = about_left_out_value(flags, words);
  return left_out.empty() ? about_spaced_list(flags, words) : left_out;
}

/// The command that words begin with; the program where they begin with none.
const CLI::App& command_of(const CLI::App& app, std::span<const std::string> words) {
  if (words.empty()) return app;
  const auto is_first = [&](const CLI::App* command) { return command->get_name() == words.front(); };
  const std::vector<const CLI::App*> found = app.get_subcommands(is_first);
  return found.empty() ? app : command_of(*found.front(), words.subspan(1));
}

/// Throws Error where a flag has a value behind an equals sign and takes none, or none that is empty.
void check_switch(const CLI::Option& option, const std::string& name, const std::string& value) {
  if (option.get_items_expected_max() > 0) return;
  if (option.get_type_name().empty()) throw Error("{0} takes no value; write {0} alone", name);
  if (value.empty()) throw Error("{0}: the value is empty; give one, or write {0} alone", name);
}

/// The complaint about a word that is no command.
std::string unknown_command(const CLI::App& app, const std::string& word) {
  const std::vector<std::string> known = commands_of(app);
  std::string right = right_word(word, [&](const std::string& name) { return std::ranges::count(known, name) > 0; });
  if (right.empty() && like_file(word))
    right = fmt::format(" Write a command before a file, as in {} info {}.", app.get_name(), word);
  return fmt::format("there is no command {}.{}", word, right.empty() ? did_you_mean(word, known) : right);
}

}  // namespace

std::string full_name(const CLI::App& command) {
  const CLI::App* above = command.get_parent();
  return (above == nullptr ? "" : full_name(*above) + " ") + command.get_name();
}

std::vector<std::string> as_parsed(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App& command = command_of(app, words);
  const std::vector<std::string> below = commands_of(command);
  if (words == std::vector<std::string>{"help"} && below.empty()) return {"--help"};
  auto mark = std::ranges::find(words, "--");
  if (mark == words.begin() && !below.empty()) mark = words.end();  // no command stands before it
  std::vector<std::string> parsed;
  for (const std::string& word : std::span(words.begin(), mark)) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals), value = equals == word.npos ? "" : word.substr(equals + 1);
    const CLI::Option* option = is_flag(word) ? command.get_option_no_throw(name) : nullptr;
    if (option != nullptr && equals != word.npos) check_switch(*option, name, value);
    const bool short_one = equals == 2 && word[0] == '-' && word[1] != '-';
    const bool both = short_one || (word.starts_with("--") && equals + 1 == word.size());
    parsed.push_back(both ? name : word);
    if (both) parsed.push_back(value);
  }
  for (const std::string& file : std::span(mark, words.end()).subspan(mark == words.end() ? 0 : 1)) {
    const bool like_other = is_flag(file) || std::ranges::count(below, file) > 0;
    parsed.push_back((like_other ? "./" : "") + file);
  }
  std::ranges::reverse(parsed);
  return parsed;
}

std::string complaint(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& words,
                      const FlagAdvice& advice) {
  const std::vector<std::string> unknown = app.remaining(true), known = commands_of(app);
  const CLI::App& parsed = parsed_of(app);
  const bool lacks_command = !known.empty() && &parsed == &app;
  if (lacks_command && !words.empty() && !is_flag(words.front())) return unknown_command(app, words.front());
  if (const std::string fault = about_values(parsed, words); !fault.empty()) return fault;
  const auto flag = std::ranges::find_if(unknown, is_flag);
  if (flag != unknown.end()) return unknown_flag(app, flag->substr(0, flag->find('=')), words, advice);
  if (unknown.empty()) return in_words(error);
  if (lacks_command) return unknown_command(app, unknown.front());
  return fmt::format("'{}' has no place in {}{}", unknown.front(), full_name(parsed),
                     as_a_flag(parsed, unknown.front()));
}

void check_values(const CLI::App& flags, const std::vector<std::string>& words) {
  if (const std::string fault = about_values(flags, words); !fault.empty()) throw Error("{}", fault);
  for (const CLI::Option* option : flags.get_options()) {
    if (std::ranges::count(option->results(), "") == 0) continue;
    if (!option->get_positional())
      throw Error("{}: the value is empty; give one, or leave the flag out", name_of(*option));
    const auto empty = std::ranges::find(words, "");
    const std::string before = empty == words.begin() || empty == words.end() ? full_name(flags) : *(empty - 1);
    throw Error("{}: the word behind {} is empty; give one, or leave it out", name_of(*option), before);
  }
}

}  // namespace kvbench::app
