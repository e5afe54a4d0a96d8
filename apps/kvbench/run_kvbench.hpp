// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace kvbench::app {

/// Runs the subcommand that the arguments name, and returns the exit code. Throws what run_kvbench() explains.
/// To stop it: request_stop().
int run_command(const std::vector<std::string>& arguments);

/// The program: runs the subcommand that the arguments name, argv[0] being the program, and returns the exit code. To
/// be called once in a process, from its first thread, before any other is started: from then on SIGINT, SIGTERM and
/// SIGHUP are blocked in it, and waited for in another thread (apps/common/stop_signals.hpp).
int run_kvbench(int argc, char** argv);

}  // namespace kvbench::app
