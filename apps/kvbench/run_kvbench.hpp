// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace kvbench::app {

/// Runs the subcommand that the arguments name, and returns the exit code. Throws what run_kvbench() explains.
/// To stop it: request_stop().
int run_command(const std::vector<std::string>& arguments);

/// The program: runs the subcommand that the arguments name, argv[0] being the program, and returns the exit code. To
/// be called once in a process, whose SIGINT, SIGTERM and SIGHUP another thread waits for from then on
/// (apps/common/stop_signals.hpp).
int run_kvbench(int argc, char** argv);

}  // namespace kvbench::app
