// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <new>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/version.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/freed_memory.hpp>
#include <apps/common/rows/flag_names.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/kvbench/commands.hpp>

namespace {

/// The subcommand that was given, or "".
std::string command_of(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? "" : commands.front()->get_name();
}

/// HDF5 crashes where the system refuses memory to its initialisation. Throws std::bad_alloc where there is less than
/// its needs.
void check_memory() {
  constexpr std::size_t least = 16 << 20;
  void* const room = mmap(nullptr, least, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  munmap(room, least);
}

/// `given` is the subcommand as soon as it is known, for messages.
int run(int argc, char** argv, std::string& given) {
  using namespace kvbench;
  using namespace kvbench::app;
  CLI::App app("kvbench replays KV-cache compression methods on the attention of real models.");
  app.set_version_flag("--version", fmt::format("kvbench {} ({})", version(), commit()));
  app.footer(
      "Exit codes: 0 success, 1 some rows failed or a theorem was violated, 2 bad usage or bad input, 3 input/output "
      "or memory failure, 130 interrupted (SIGINT, SIGTERM or SIGHUP).");
  app.require_subcommand(1);
  const Command commands[] = {add_info(app),    add_replay(app), add_sweep(app),    add_merge(app),
                              add_compare(app), add_report(app), add_validate(app), add_methods(app),
                              add_synth(app),   add_eval(app),   add_cache(app)};
  wait_for_stop_signals("kvbench");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return print_answer(app, asked);
  } catch (const CLI::ParseError& error) {
    const std::string command = command_of(app);
    throw Error("{} (see kvbench {}{}--help)", complaint(app, error), command, command.empty() ? "" : " ");
  }
  given = command_of(app);
  refuse_empty_values(*app.get_subcommands().front());
  for (const Command& command : commands) {
    if (command.flags->parsed()) return command.run();
  }
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace kvbench::app;
  keep_freed_memory();
  std::string command;
  const Program program{.name = "kvbench",
                        .out_of_memory = "use fewer --threads, or a machine with more memory",
                        .words = [&](const std::string& message) { return with_flags(message, command); }};
  return run_program(program, [&] {
    check_memory();
    return run(argc, argv, command);
  });
}
