// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/help_topics.hpp>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include <fmt/ranges.h>

#include <kvbench/core/name.hpp>
#include <kvbench/methods/sets.hpp>

#include <apps/common/rows/method_slips.hpp>

namespace kvbench::app {
namespace {

struct Topic {
  const char* word;
  std::vector<std::string> arguments;
};
const Topic topics[] = {{"columns", {"replay", "--columns"}}, {"metrics", {"compare", "--metrics"}},
                        {"tasks", {"eval", "--list-tasks"}},  {"checks", {"validate", "--list"}},
                        {"claims", {"validate", "--list"}},   {"sweeps", {"sweep", "--example"}}};

/// Whether an option takes one number, so that its plural is another word: `scores` are no --score.
bool takes_number(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto begins = [&](const char* number) { return type.starts_with(number); };
  return option.get_items_expected_max() == 1 && std::ranges::any_of(std::array{"INT", "UINT", "FLOAT"}, begins);
}

/// The option that a word means: with its dashes, without them, or in the plural.
const CLI::Option* option_of(const CLI::App& command, const std::string& word) {
  const std::string singular = word.ends_with('s') ? word.substr(0, word.size() - 1) : word;
  for (const std::string& name : {word, "--" + word, "--" + singular}) {
    const CLI::Option* option = name.starts_with('-') ? command.get_option_no_throw(name) : nullptr;
    const bool plural = name.size() == word.size() + 1;
    if (option != nullptr && name != "--help" && name != "-h" && !(plural && takes_number(*option))) return option;
  }
  return nullptr;
}

}  // namespace

std::vector<Described> described_commands(const CLI::App& app, const std::string& above) {
  std::vector<Described> all;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    all.push_back({above + command->get_name(), command});
    std::ranges::move(described_commands(*command, all.back().name + " "), std::back_inserter(all));
  }
  return all;
}

std::vector<std::string> help_topics() {
  std::vector<std::string> words;
  for (const Topic& topic : topics) words.emplace_back(topic.word);
  return words;
}

std::vector<std::string> method_words() {
  std::vector<std::string> words = methods::set_names();
  for (const methods::MethodInfo& method : methods::all_methods()) words.push_back(method.name);
  for (const methods::Wrapper& wrapper : methods::all_wrappers()) words.push_back(wrapper.info.name);
  for (const auto& [info, settings] : methods::rows_of_set("families")) {
    if (info->name.find('+') != info->name.npos) words.push_back(info->name);
  }
  return words;
}

std::string near_topics(const CLI::App& app, const std::string& word) {
  std::vector<std::string> known = help_topics();
  std::ranges::copy(method_words(), std::back_inserter(known));
  for (const auto& [name, command] : described_commands(app)) {
    known.push_back(command->get_name());
    for (const CLI::Option* option : command->get_options())
      std::ranges::copy(option->get_lnames(), std::back_inserter(known));
  }
  std::ranges::sort(known);
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return did_you_mean(word, known);
}

std::vector<std::string> arguments_of_topic(const std::string& topic) {
  const auto* const found = std::ranges::find_if(topics, [&](const Topic& one) { return same_name(one.word, topic); });
  if (found != std::end(topics)) return found->arguments;
  const auto is = [&](const methods::Wrapper& wrapper) { return same_name(wrapper.info.name, topic); };
  const bool wrapper = std::ranges::any_of(methods::all_wrappers(), is);
  if (wrapper || methods::is_set(topic) || is_method(topic)) return {"methods", topic};
  return {};
}

std::string flag_page(const CLI::App& app, const std::string& word) {
  std::vector<std::pair<std::string, std::vector<std::string>>> texts;  // each with the commands that say it
  for (const auto& [name, flags] : described_commands(app)) {
    const CLI::Option* option = option_of(*flags, word);
    if (option == nullptr) continue;
    const std::string text = fmt::format("{}\n  {}", option->get_name(false, true), option->get_description());
    const auto same = std::ranges::find(texts, text, &std::pair<std::string, std::vector<std::string>>::first);
    (same == texts.end() ? texts.emplace_back(text, std::vector<std::string>()) : *same).second.push_back(name);
  }
  std::string page;
  for (const auto& [text, commands] : texts)
    page += fmt::format("{}{}\n  (kvbench {})\n", page.empty() ? "" : "\n", text, fmt::join(commands, ", "));
  return page;
}

}  // namespace kvbench::app
