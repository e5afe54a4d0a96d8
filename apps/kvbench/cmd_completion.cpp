// SPDX-License-Identifier: Apache-2.0
// The completion of command lines in a shell, from the flags that the commands declare.
#include <algorithm>
#include <iterator>

#include <fmt/ranges.h>

#include <kvbench/core/name.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/method_slips.hpp>
#include <apps/kvbench/commands.hpp>
#include <apps/kvbench/help_topics.hpp>

namespace kvbench::app {
namespace {

/// A flag of a command.
struct FlagWords {
  std::vector<std::string> names;  ///< each with its dashes
  std::string description;
  bool takes_value = false, takes_methods = false;
  std::vector<std::string> values;  ///< that it takes; empty: any
};

struct CommandWords {
  std::string name;
  std::vector<FlagWords> flags;
};

/// The words between the braces of "TEXT:{csv,json}".
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::size_t open = type.find('{'), close = type.find('}', std::min(open, type.size()));
  if (close == type.npos) return {};
  return CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
}

std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_fnames()) {
    if (name.size() > 1 && std::ranges::find(names, "--" + name) == names.end()) names.push_back("--" + name);
  }
  return names;
}

FlagWords words_of(const CLI::Option& option) {
  const auto is = [&](const char* flag) { return option.check_name(flag); };
  return {.names = names_of(option),
          .description = option.get_description(),
          .takes_value = option.get_items_expected_max() > 0,
          .takes_methods = std::ranges::any_of(flags_of_methods, is),
          .values = values_of(option)};
}

/// What a command line consists of, for all shells.
struct CommandLine {
  std::vector<CommandWords> commands;
  std::vector<std::string> methods = method_words();
  /// By command what stands behind it without a flag, and no file; of "" what a line begins with.
  std::vector<std::pair<std::string, std::vector<std::string>>> behind;
  std::vector<std::pair<std::string, std::string>> below;  ///< "validate" and its command "golden"

  explicit CommandLine(const CLI::App& app) {
    std::vector<std::string> first = {"help", "version"};
    for (const auto& [name, command] : described_commands(app)) {
      commands.push_back({name, {}});
      if (const std::size_t end = name.find(' '); end != name.npos)
        below.emplace_back(name.substr(0, end), name.substr(end + 1));
      else
        first.push_back(name);
      for (const CLI::Option* option : command->get_options()) {
        if (FlagWords flag = words_of(*option); !flag.names.empty()) commands.back().flags.push_back(std::move(flag));
      }
    }
    std::vector<std::string> topics = first;
    std::ranges::copy(help_topics(), std::back_inserter(topics));
    std::ranges::copy(methods, std::back_inserter(topics));
    behind = {{"", std::move(first)}, {"help", std::move(topics)}, {"completion", shells}};
  }

  static inline const std::vector<std::string> shells = {"bash", "zsh", "fish"};
};

/// Those that are commands of kvbench too, without kvbench- in front.
constexpr const char* page_commands[] = {"bundle", "verify", "cite", "claim"};

/// Behind the tables of words: what they are completed with. A list is completed behind its last comma and the dash
/// that leaves an item out, a wrapper behind its bracket, parameters behind that of their method, as its page has them.
/// Bash makes words of each = and what is around it, zsh does not. Where no word is known files are offered.
constexpr const char* completing = R"sh(
_kvbench_parameters() {
  command kvbench methods "$1" 2>/dev/null | if [ "$2" = "" ]; then sed -n 's/^    \([^ ]*\) = .*/\1=/p'
    else sed -n "s/^    $2 = .*\[\(.*|.*\)\]\$/\1/p" | tr '|' ' '; fi
}
_kvbench() {
  local line=("${COMP_WORDS[@]}") at=$COMP_CWORD words=
  case "${line[0]##*/}" in
    kveval) line=(kvbench eval "${line[@]:1}"); at=$((at + 1)) ;;
    kvbench-validate) line=(kvbench validate "${line[@]:1}"); at=$((at + 1)) ;;
    kvbench) ;;
    *) line=(kvbench "${line[@]}"); at=$((at + 1)) ;;
  esac
  local cur=${line[at]} word=${line[at]} command=${line[1]}
  COMPREPLY=()
  if [ "$cur" = "=" ]; then at=$((at - 1)) cur= word=${line[at]}=; fi
  while [ "$at" -gt 2 ] && [ "${line[at-1]}" = "=" ]; do at=$((at - 2)) word=${line[at]}=$word; done
  local prev=${line[at-1]}
  if [[ $word == --*=* ]]; then prev=${word%%=*} word=${word#*=}; fi
  case "$cur" in \"*|\'*) cur=${cur#?} ;; esac
  local item=${word##*[,;[(\"\']} method=${word%\[*}
  if [[ ${word##*]} == *\[* ]]; then
    method=${method##*[,\"\']} method=${method#-} method=${method//\\/}
    if [[ $item == *=* ]]; then words=$(_kvbench_parameters "$method" "${item%%=*}") item=${item#*=}
    else words=$(_kvbench_parameters "$method") && compopt -o nospace 2>/dev/null; fi
  else
    if [ "$at" = 1 ]; then command=; prev=
    elif [ "$at" -gt 2 ] && [ "$(_kvbench_flags "$command ${line[2]}")" != "" ]; then command="$command ${line[2]}"; fi
    if [ -n "$prev" ]; then words=$(_kvbench_values "$command" "$prev"); fi
    if [ "$words" = "" ] && [[ $prev != -* || $word == -* ]]; then
      if [[ $word == -* ]]; then words=$(_kvbench_flags "$command"); else words=$(_kvbench_words "$command"); fi
    fi
    if [[ $word == *,* ]]; then item=${item#-}; fi
  fi
  [ "$words" = "" ] && return
  COMPREPLY=($(compgen -P "${cur%"$item"}" -W "$words" -- "$item"))
}
)sh";

/// The words with those in lower case beside them, because bash and zsh compare with case, and names are read without.
std::string in_both_cases(std::vector<std::string> words) {
  for (std::string word : std::vector(words)) {
    std::ranges::transform(word, word.begin(), lower_case);
    if (std::ranges::find(words, word) == words.end()) words.push_back(word);
  }
  return fmt::format("{}", fmt::join(words, " "));
}

std::string bash_script(const CommandLine& all) {
  std::string flags, values, words;
  for (const CommandWords& command : all.commands) {
    std::vector<std::string> names;
    for (const FlagWords& flag : command.flags) {
      std::ranges::copy(flag.names, std::back_inserter(names));
      if (!flag.takes_value || !(flag.takes_methods || !flag.values.empty())) continue;
      std::vector<std::string> patterns;
      for (const std::string& name : flag.names) patterns.push_back(fmt::format("\"{} {}\"", command.name, name));
      values += fmt::format("    {}) echo \"{}\" ;;\n", fmt::join(patterns, "|"),
                            flag.takes_methods ? "$_kvbench_methods" : fmt::format("{}", fmt::join(flag.values, " ")));
    }
    const bool has_page = std::ranges::find(page_commands, command.name) != std::end(page_commands);
    flags += fmt::format("    \"{}\") echo \"{}\"{} ;;\n", command.name, fmt::join(names, " "),
                         has_page ? fmt::format("; _kvbench_page kvbench-{}", command.name) : "");
  }
  for (const auto& [command, list] : all.behind)
    words += fmt::format("    \"{}\") echo \"{}\" ;;\n", command, in_both_cases(list));
  for (const auto& [command, word] : all.below) words += fmt::format("    {}) echo \"{}\" ;;\n", command, word);
  return fmt::format(
      "# Completion of kvbench and its programs in bash, written by `kvbench completion`.\n"
      "_kvbench_methods=\"{}\"\n"
      "_kvbench_page() {{\n"
      "  command \"$1\" --help 2>/dev/null | sed -n 's/{{[^}}]*}}//g; s/^ *-/-/p' | tr ', ' '\\n\\n' |\n"
      "    grep '^--*[a-z]' | sort -u\n}}\n"
      "_kvbench_flags() {{\n  case \"$1\" in\n    \"\") echo \"--help --version\" ;;\n{}"
      "    {}) _kvbench_page \"$1\" ;;\n  esac\n}}\n"
      "_kvbench_values() {{\n  case \"$1 $2\" in\n{}  esac\n}}\n"
      "_kvbench_words() {{\n  case \"$1\" in\n{}    methods) echo \"$_kvbench_methods\" ;;\n  esac\n}}\n{}"
      "complete -o default -F _kvbench kvbench kveval kvbench-validate {}\n",
      in_both_cases(all.methods), flags, fmt::format("*{}", fmt::join(programs_with_help, "|*")), values, words,
      completing, fmt::join(programs_with_help, " "));
}

/// zsh runs what bash does; as the function of a folder of its fpath the script is run when it is first needed.
std::string zsh_script(const CommandLine& all) {
  return fmt::format("#compdef kvbench kveval kvbench-validate {}\n", fmt::join(programs_with_help, " ")) +
         "autoload -Uz bashcompinit && bashcompinit\n" + bash_script(all) +
         "if [ \"${funcstack[1]}\" = _kvbench ]; then _bash_complete -o default -F _kvbench; fi\n";
}

/// A text of one line between the quotes of fish.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "'";
}

/// The line of fish for a flag of a command: `of` is the program, and the condition under which it has the flag.
std::string fish_line(const std::string& of, const FlagWords& flag) {
  std::string line = "complete -c " + of;
  for (const std::string& name : flag.names)
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  if (flag.takes_methods)
    line += " -x -a '(__fish_complete_list , __kvbench_methods)'";
  else if (!flag.values.empty())
    line += fmt::format(" -x -a '{}'", fmt::join(flag.values, " "));
  else if (flag.takes_value)
    line += " -r";
  return line + " -d " + quoted(flag.description) + "\n";
}

/// What completes the items of a list of methods, and the parameters in their brackets.
constexpr const char* fish_methods = R"sh(function __kvbench_methods
  set -l item (commandline -ct | string replace -r '^(--?[a-z-]*=)?["\']?' '' | string replace -a '\\' '' |
    string match -r '[^,]*(?:\[[^\]]*)?$')
  set -l inside (string match -gr '^-?(.*)\[(.*)$' -- $item)
  if test (count $inside) = 2
    set -l page (command -q kvbench; and command kvbench methods $inside[1] 2>/dev/null)
    set -l part (string match -r '[^,;]*$' -- $inside[2])
    set -l before (string replace -r '.*,' '' -- $item | string replace -r '[^,;[]*$' '')
    if set -l name (string match -gr '^(.*)=' -- $part)
      string match -gr "^    $name = .*\[(.*\|.*)\]\$" -- $page | string split '|' |
        string replace -r -- '^.*' "$before$name=\$0"
    else
      string match -gr '^    (\S+) = ' -- $page | string replace -r -- '^.*' "$before\$0="
    end
    return
  end
  set -l before (string match -r '^-|.*\(' -- $item)
  printf "$before%s\n" (__kvbench_names)
end
)sh";

std::string fish_script(const CommandLine& all) {
  std::string out = fmt::format(
      "# Completion of kvbench and its programs in fish, written by `kvbench completion`.\n"
      "function __kvbench_names\n  printf '%s\\n' {}\nend\n{}"
      "function __kvbench_page\n"
      "  command $argv[1] --help 2>/dev/null | string match -r '^ +-.*' | string replace -ra '\\{{[^}}]*\\}}' '' |\n"
      "    string split ' ' | string split ',' | string match -r '^--?[a-z][-a-z0-9]*$' | sort -u\nend\n"
      "function __kvbench_in\n  set -l words (commandline -opc) ''\n"
      "  test \"$words[2]\" = \"$argv[1]\"; or return\n"
      "  test (count $argv) = 1; or test \"$words[3]\" = \"$argv[2]\"\nend\n"
      "complete -c kvbench -n '__kvbench_in methods' -f -a '(__kvbench_methods)'\n"
      "complete -c kvbench -n '__kvbench_in \"\"' -l help -d 'Print the commands and exit'\n"
      "complete -c kvbench -n '__kvbench_in \"\"' -l version -d 'Print the version and exit'\n",
      fmt::join(all.methods, " "), fish_methods);
  for (const char* program : programs_with_help)
    out += fmt::format("complete -c {0} -n 'string match -q -- \"-*\" (commandline -ct)' -a '(__kvbench_page {0})'\n",
                       program);
  for (const char* command : page_commands)
    out += fmt::format(
        "complete -c kvbench -n '__kvbench_in {0}; and string match -q -- \"-*\" (commandline -ct)' -a "
        "'(__kvbench_page kvbench-{0})'\n",
        command);
  for (const auto& [command, words] : all.behind)
    out += fmt::format("complete -c kvbench -n '__kvbench_in \"{}\"' -f -a '{}'\n", command, fmt::join(words, " "));
  for (const auto& [command, word] : all.below)
    out += fmt::format("complete -c kvbench -n '__kvbench_in {0}' -a {1}\ncomplete -c kvbench-{0} -a {1}\n", command,
                       word);
  for (const CommandWords& command : all.commands) {
    for (const FlagWords& flag : command.flags) {
      out += fish_line(fmt::format("kvbench -n '__kvbench_in {}'", command.name), flag);
      if (command.name == "eval") out += fish_line("kveval", flag);
      if (command.name.starts_with("validate")) out += fish_line("kvbench-validate", flag);
    }
  }
  return out;
}

}  // namespace

Command add_completion(CLI::App& app) {
  CLI::App* flags = app.add_subcommand("completion", "Print a script that completes command lines in a shell");
  auto shell = std::make_shared<std::string>();
  flags->add_option("shell", *shell, "bash, zsh or fish: source it, or save it where the shell looks")
      ->check(one_of(CommandLine::shells))
      ->required();
  flags->footer(
      "eval \"$(kvbench completion bash)\" completes in this shell; in zsh, after compinit, the same with zsh; in fish "
      "kvbench completion fish | source. `make install` installs all three.");
  return {flags, [&app, shell] {
            const CommandLine words(app);
            print(*shell == "bash" ? bash_script(words) : *shell == "zsh" ? zsh_script(words) : fish_script(words));
            return static_cast<int>(done);
          }};
}

}  // namespace kvbench::app
