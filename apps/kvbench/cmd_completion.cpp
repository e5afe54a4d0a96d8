// SPDX-License-Identifier: Apache-2.0
// The completion of command lines in a shell, from the flags that the commands declare.
#include <algorithm>

#include <fmt/ranges.h>

#include <kvbench/methods/sets.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/method_slips.hpp>
#include <apps/kvbench/commands.hpp>
#include <apps/kvbench/help_topics.hpp>

namespace kvbench::app {
namespace {

/// Behind the tables of words: what they are completed with. A list is completed behind its last comma, and where no
/// word is known bash offers files.
constexpr const char* completing = R"bash(
_kvbench() {
  local line=("${COMP_WORDS[@]}") at=$COMP_CWORD words
  case "${line[0]##*/}" in
    kveval) line=(kvbench eval "${line[@]:1}"); at=$((at + 1)) ;;
    kvbench-validate) line=(kvbench validate "${line[@]:1}"); at=$((at + 1)) ;;
  esac
  local cur=${line[at]} prev=${line[at-1]} command=${line[1]}
  COMPREPLY=()
  if [ "$cur" = "=" ]; then cur=
  elif [ "$prev" = "=" ]; then prev=${line[at-2]}; fi
  if [ "$at" = 1 ]; then command=; prev=
  elif [ "$at" -gt 2 ] && [ "$(_kvbench_flags "$command ${line[2]}")" != "" ]; then command="$command ${line[2]}"; fi
  if [ -n "$prev" ]; then words=$(_kvbench_values "$command" "$prev"); fi
  if [ "$words" = "" ] && [[ $prev != -* || $cur == -* ]]; then
    if [[ $cur == -* ]]; then words=$(_kvbench_flags "$command"); else words=$(_kvbench_words "$command"); fi
  fi
  [ "$words" = "" ] && return
  local list=
  if [[ $cur == *,* ]]; then list=${cur%,*},; fi
  COMPREPLY=($(compgen -P "$list" -W "$words" -- "${cur##*,}"))
}
complete -o default -F _kvbench kvbench kveval kvbench-validate
)bash";

/// The words between the braces of "TEXT:{csv,json}", which the option takes; those of methods where it takes these.
std::string words_of(const CLI::Option& option) {
  const auto takes_methods = [&](const char* flag) { return option.check_name(flag); };
  if (std::ranges::any_of(flags_of_methods, takes_methods)) return "$_kvbench_methods";
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.find('}', std::min(open, type.size()));
  if (close == type.npos) return "";
  std::string words = type.substr(open + 1, close - open - 1);
  std::ranges::replace(words, ',', ' ');
  return words;
}

/// The flags of a command, each with its dashes.
std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_fnames()) {
    if (name.size() > 1 && std::ranges::find(names, "--" + name) == names.end()) names.push_back("--" + name);
  }
  return names;
}

/// The lines of a case statement for a command: its flags, and the values of those that have known ones.
struct Cases {
  std::string flags, values;
};
Cases cases_of(const std::string& name, const CLI::App& command) {
  std::vector<std::string> all;
  Cases cases;
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string> names = flags_of(*option);
    all.insert(all.end(), names.begin(), names.end());
    const bool takes_value = option->get_items_expected_max() > 0;
    if (names.empty() || !takes_value) continue;
    const std::string words = words_of(*option);
    std::vector<std::string> patterns;
    for (const std::string& flag : names) patterns.push_back(fmt::format("\"{} {}\"", name, flag));
    if (!words.empty()) cases.values += fmt::format("    {}) echo \"{}\" ;;\n", fmt::join(patterns, "|"), words);
  }
  cases.flags = fmt::format("    \"{}\") echo \"{}\" ;;\n", name, fmt::join(all, " "));
  return cases;
}

/// Methods, and the sets that stand for several.
std::vector<std::string> method_words() {
  std::vector<std::string> words = {"all", "families"};
  for (const methods::MethodInfo& method : methods::all_methods()) {
    const std::string kind(name_of(method.kind));
    if (std::ranges::find(words, kind) == words.end() && methods::find_family(kind)) words.push_back(kind);
  }
  for (const methods::MethodInfo& method : methods::all_methods()) words.push_back(method.name);
  return words;
}

std::string bash_script(const CLI::App& app) {
  std::vector<std::string> commands = {"help", "version"};
  std::string flags, values, words;
  for (const auto& [name, command] : described_commands(app)) {
    const std::size_t end = name.find(' ');
    if (end == name.npos)
      commands.push_back(name);
    else
      words += fmt::format("    {}) echo \"{}\" ;;\n", name.substr(0, end), name.substr(end + 1));
    const Cases cases = cases_of(name, *command);
    flags += cases.flags, values += cases.values;
  }
  return fmt::format(
      "# Completion of kvbench and its programs in bash, written by `kvbench completion bash`.\n"
      "_kvbench_methods=\"{}\"\n"
      "_kvbench_flags() {{\n  case \"$1\" in\n    \"\") echo \"--help --version\" ;;\n{}  esac\n}}\n"
      "_kvbench_values() {{\n  case \"$1 $2\" in\n{}  esac\n}}\n"
      "_kvbench_words() {{\n  case \"$1\" in\n    \"\") echo \"{}\" ;;\n    help) echo \"{} {}\" ;;\n"
      "    methods) echo \"$_kvbench_methods\" ;;\n    completion) echo bash ;;\n{}  esac\n}}\n{}",
      fmt::join(method_words(), " "), flags, values, fmt::join(commands, " "), fmt::join(commands, " "),
      fmt::join(help_topics(), " "), words, completing);
}

}  // namespace

Command add_completion(CLI::App& app) {
  CLI::App* flags = app.add_subcommand("completion", "Print a script that completes command lines in a shell");
  auto shell = std::make_shared<std::string>();
  flags->add_option("shell", *shell, "bash: source it, or save it where bash-completion reads it")
      ->check(one_of({"bash"}))
      ->required();
  flags->footer("eval \"$(kvbench completion bash)\" completes in this shell; `make install` installs the script.");
  return {flags, [&app, shell] {
            print(bash_script(app));
            return static_cast<int>(done);
          }};
}

}  // namespace kvbench::app
