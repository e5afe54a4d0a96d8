// SPDX-License-Identifier: Apache-2.0
#include <apps/common/rows/commands.hpp>

#include <sys/mman.h>

#include <new>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/freed_memory.hpp>
#include <apps/common/rows/flag_names.hpp>
#include <apps/common/rows/method_slips.hpp>
#include <apps/common/stop_signals.hpp>

namespace kvbench::app {
namespace {

/// The innermost command that was given; null where none was.
const CLI::App* parsed_of(const CLI::App& app) {
  const CLI::App* parsed = nullptr;
  for (auto below = app.get_subcommands(); !below.empty(); below = parsed->get_subcommands()) parsed = below.front();
  return parsed;
}

/// HDF5 crashes where the system refuses memory to its initialisation. Throws std::bad_alloc where there is less than
/// its needs.
void check_memory() {
  constexpr std::size_t least = 16 << 20;
  void* const room = mmap(nullptr, least, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  munmap(room, least);
}

}  // namespace

const char* const exit_codes =
    "Exit codes: 0 success, 1 some rows failed, a theorem was violated, a method breaks its contract or no plan fits, "
    "2 bad usage or bad input, 3 input/output or memory failure, 130 interrupted (SIGINT, SIGTERM or SIGHUP).";

void add_examples(CLI::App& command, const std::vector<const char*>& lines) {
  std::string text = lines.size() == 1 ? "Example:\n" : "Examples:\n";
  for (const char* line : lines) text += fmt::format("  kvbench {}\n", line);
  const std::string own =
      command.get_footer() == command.get_parent()->get_footer() ? exit_codes : command.get_footer();
  command.footer(text + own);
}

int run_words(CLI::App& app, std::span<const Command> commands, const Words& words, std::string& given) {
  for (const Command& command : commands) {
    if (!command.start || words.empty() || words.front() != command.flags->get_name()) continue;
    given = words.front();
    if (const auto code = command.start({words.begin() + 1, words.end()})) return *code;
  }
  try {
    app.parse(as_parsed(app, words));
  } catch (const CLI::Success& asked) {  // --help, --version
    return print_answer(app, asked);
  } catch (const CLI::ParseError& error) {
    const CLI::App* command = parsed_of(app);
    const std::string fault = complaint(app, error, words, method_advice);
    throw Error("{} (see {} --help)", fault, full_name(command == nullptr ? app : *command));
  }
  const CLI::App& parsed = *parsed_of(app);
  given = app.get_subcommands().front()->get_name();
  check_values(parsed, words);
  for (const Command& command : commands) {
    if (command.flags->parsed()) return command.run();
  }
  return done;
}

int run_commands(const std::function<int(std::string& given)>& body) {
  keep_freed_memory();
  std::string command;
  const Program program{.name = "kvbench",
                        .out_of_memory = "use fewer --threads, or a machine with more memory",
                        .words = [&](const std::string& message) { return with_flags(message, command); }};
  return run_program(program, [&] {
    check_memory();
    wait_for_stop_signals("kvbench");
    return body(command);
  });
}

}  // namespace kvbench::app
