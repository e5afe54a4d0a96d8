// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <cstdio>
#include <new>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/read_files.hpp>
#include <kvbench/core/version.hpp>
#include <kvbench/kernels/backend.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/flag_names.hpp>
#include <apps/common/freed_memory.hpp>
#include <apps/common/stop_signals.hpp>
#include <apps/kvbench/commands.hpp>

namespace {

/// The subcommand that was given, or "".
std::string command_of(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? "" : commands.front()->get_name();
}

/// Prints the message with flags for the fields that it names.
int fail(kvbench::app::ExitCode code, const CLI::App& app, const char* message) {
  fmt::print(stderr, "kvbench: {}\n", kvbench::app::with_flags(message, command_of(app)));
  return code;
}

/// HDF5 crashes where the system refuses memory to its initialisation. Throws std::bad_alloc where there is less than
/// its needs.
void check_memory() {
  constexpr std::size_t least = 16 << 20;
  void* const room = mmap(nullptr, least, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (room == MAP_FAILED) throw std::bad_alloc();
  munmap(room, least);
}

int run(int argc, char** argv) {
  using namespace kvbench;
  using namespace kvbench::app;
  CLI::App app("kvbench replays KV-cache compression methods on the attention of real models.");
  app.set_version_flag("--version", fmt::format("kvbench {} ({})", version(), commit()));
  app.footer(
      "Exit codes: 0 success, 1 some rows failed or a theorem was violated, 2 bad usage or bad input, 3 input/output "
      "or memory failure, 130 interrupted (SIGINT, SIGTERM or SIGHUP).");
  app.require_subcommand(1);
  const Command commands[] = {add_info(app),   add_replay(app),   add_sweep(app),   add_merge(app), add_compare(app),
                              add_report(app), add_validate(app), add_methods(app), add_synth(app), add_eval(app)};
  try {
    wait_for_stop_signals("kvbench");
    app.parse(argc, argv);
    for (const Command& command : commands) {
      if (command.flags->parsed()) return command.run();
    }
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    const std::string command = command_of(app);
    fmt::print(stderr, "kvbench: {} (see kvbench {}{}--help)\n", complaint(app, error), command,
               command.empty() ? "" : " ");
    return bad_input;
  } catch (const Error& error) {
    return fail(bad_input, app, error.what());
  } catch (const Interrupted&) {
    return fail(was_interrupted, app, "interrupted; no output was written");
  } catch (const OutOfDeviceMemory& error) {
    return fail(machine_failed, app, error.what());
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception& error) {
    return fail(machine_failed, app, error.what());
  }
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  kvbench::protect_read_files();
  kvbench::app::keep_freed_memory();
  try {
    check_memory();
    return run(argc, argv);
  } catch (const std::bad_alloc&) {  // printed without allocating, as there may be nothing left
    std::fputs("kvbench: out of memory; use fewer --threads, or a machine with more memory\n", stderr);
    return kvbench::app::machine_failed;
  }
}
