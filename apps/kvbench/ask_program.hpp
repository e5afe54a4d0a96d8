// SPDX-License-Identifier: Apache-2.0
// Another program, asked a question that it answers by printing.
#pragma once

#include <chrono>
#include <string>

#include <apps/common/rows/commands.hpp>

namespace kvbench::app {

struct ProgramAnswer {
  std::string fault;  ///< why it gave none, as a clause: it cannot be started, took too long, ended with another code
  std::string text;   ///< what it printed on both streams, at most 64 KiB
};

/// Runs the program of this path with these words and no input. After the limit it is killed, with what it started.
/// Throws Interrupted if the user stops this program, IoError if the system has no pipe.
ProgramAnswer ask_program(const std::string& path, const Words& words, std::chrono::seconds limit);

}  // namespace kvbench::app
