// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/output_path.hpp>
#include <kvbench/core/version.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/flag_names.hpp>
#include <apps/common/slips.hpp>
#include <apps/kvbench/commands.hpp>
#include <apps/kvbench/help_topics.hpp>
#include <apps/kvbench/run_kvbench.hpp>

namespace {

constexpr const char* examples =
    "Examples:\n"
    "  kvbench info traces/smollm2-135m.h5\n"
    "  kvbench replay traces/smollm2-135m.h5 --method snapkv,h2o,snapkv+kivi4 --budget 25%mem -o run.csv --summary\n"
    "  kvbench report run.csv -o run.html\n";

struct CommandExamples {
  const char* command;
  std::vector<const char*> lines;
};
/// Those of the help of each command, behind "kvbench ". eval shows the help of kveval.
const CommandExamples command_examples[] = {
    {"info",
     {"info traces/smollm2-135m.h5", "info traces/smollm2-135m.h5 --rounding",
      "info traces/smollm2-135m.h5 --format csv"}},
    {"replay",
     {"replay traces/smollm2-135m.h5 --method snapkv,h2o,snapkv+kivi4 --budget 25%mem -o run.csv --summary",
      "replay traces/smollm2-135m.h5 --method quest,clusterkv --budget 25%read --format table",
      "replay traces/smollm2-135m.h5 --method snapkv,h2o --budget 25%mem --raw run.h5 -o run.csv"}},
    {"sweep", {"sweep configs/balancekv-fig2.toml -o fig2.csv", "sweep --example"}},
    {"allocate", {"allocate probes.h5 --menu h2o,h2o+q5_1,q8_0,q5_1,q4_0 --budget 25%mem,12.5%mem -o plan.toml"}},
    {"merge", {"merge part1.cells part2.cells -o rows.csv"}},
    {"compare", {"compare run.h5 --a snapkv --b h2o@25%mem", "compare run.h5 --by layer --metric mass_recall"}},
    {"report", {"report run.csv -o run.html", "report run.csv --figure list"}},
    {"methods", {"methods", "methods eviction", "methods snapkv", "methods \"snapkv[window=64]\" --check"}},
    {"synth", {"synth --pattern needle --tokens 2048 --prompt-tokens 1792 -o needle.h5"}},
    {"cache", {"cache", "cache --remove model.gguf"}},
    {"bundle", {"bundle run.csv -o result.kvb.zip", "bundle run.csv --seeds 3 -o result.kvb.zip"}},
    {"verify", {"verify result.kvb.zip", "verify result.kvb.zip --input FOLDER --sample 10 --seed mine"}},
    {"doctor", {"doctor"}},
    {"man", {"man | man -l -", "man kveval | man -l -"}},
    {"cite", {"cite result.kvb.zip --as bibtex", "cite result.kvb.zip --as llama.cpp -o table.md"}},
    {"claim", {"claim claim.toml eval.csv"}},
    {"completion", {"completion bash > ~/.local/share/bash-completion/completions/kvbench"}}};

/// The arguments in the words of flags: "help" and "help COMMAND" are --help and COMMAND --help, "help TOPIC" what
/// prints it, "version" is --version. Throws Error where no command is given, or one without help.
std::vector<std::string> in_flags(const CLI::App& app, std::vector<std::string> arguments) {
  using kvbench::Error;
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(command->get_name());
  if (arguments.empty()) {
    throw Error("give a command: {}.\n{}kvbench help describes all commands, kvbench help COMMAND one of them.",
                fmt::join(commands, ", "), examples);
  }
  if (arguments.size() == 1 && (arguments[0] == "-v" || arguments[0] == "-V")) return {"--version"};
  const std::string first = arguments.front();
  if (first != "help" && first != "version") return arguments;
  const std::size_t most = first == "help" ? 2 : 1;
  if (arguments.size() > most) throw Error("'{}' has no effect beside {}; leave it out", arguments[most], first);
  if (first == "version") return {"--version"};
  if (arguments.size() == 1) return {"--help"};
  const std::string& asked = arguments[1];
  if (asked == "help" || asked == "version") return {"--help"};  // which describes both
  if (std::ranges::find(commands, asked) != commands.end()) return {asked, "--help"};
  const std::vector<std::string> of_topic = kvbench::app::arguments_of_topic(asked);
  return of_topic.empty() ? std::vector{asked} : of_topic;  // a command that there is not
}

/// `given` is the subcommand as soon as it is known, for messages.
int run_arguments(const std::vector<std::string>& words, std::string& given) {
  using namespace kvbench;
  using namespace kvbench::app;
  CLI::App app("kvbench replays KV-cache compression methods on the attention of real models.", "kvbench");
  app.set_version_flag("--version", fmt::format("kvbench {} ({})", version(), commit()));
  app.footer(
      std::string(examples) +
      "kvbench help COMMAND describes the flags of a command, kvbench help TOPIC a flag such as budget, a method,\n"
      "a set of methods such as llama.cpp, or one of " +
      fmt::format("{}", fmt::join(help_topics(), ", ")) + ". kvbench version names the version.\n" + exit_codes);
  app.require_subcommand(1);
  const Command commands[] = {add_info(app),   add_replay(app),     add_sweep(app),   add_merge(app),  add_compare(app),
                              add_report(app), add_validate(app),   add_methods(app), add_synth(app),  add_eval(app),
                              add_cache(app),  add_allocate(app),   add_bundle(app),  add_verify(app), add_cite(app),
                              add_claim(app),  add_completion(app), add_man(app),     add_doctor(app)};
  for (const Command& command : commands) take_one_value_each(*command.flags);
  for (const CommandExamples& of : command_examples) add_examples(*app.get_subcommand(of.command), of.lines);
  const std::vector<std::string> read = in_flags(app, words);
  if (read.size() == 1 && words.front() == "help") {
    const std::string& asked = read.front();
    if (const std::string page = flag_page(app, asked); !page.empty()) return print(page), done;
    const bool known = asked.starts_with('-') || !right_word(asked, [](const std::string&) { return true; }).empty();
    if (!known) throw Error("there is no command or topic {}.{} (see kvbench --help)", asked, near_topics(app, asked));
  }
  return run_words(app, commands, read, given);
}

}  // namespace

int kvbench::app::run_kvbench(int argc, char** argv) {
  return run_commands([&](std::string& given) { return run_arguments({argv + 1, argv + argc}, given); });
}

int kvbench::app::run_command(const std::vector<std::string>& arguments) {
  const struct Protected {
    Protected() { protect_read_files(); }
    ~Protected() { forget_read_files(); }
  } inputs;
  std::string command;
  try {
    return run_arguments(arguments, command);
  } catch (const Error& error) {
    throw Error("{}", with_flags(error.what(), command));
  }
}
