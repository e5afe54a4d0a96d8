// SPDX-License-Identifier: Apache-2.0
#include "interrupt.hpp"

#include <csignal>

#include <kvbench/core/error.hpp>

namespace kvbench::kvdump {
namespace {

volatile std::sig_atomic_t stop_requested = 0;

}  // namespace

void stop_on_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int) { stop_requested = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() noexcept { return stop_requested != 0; }

void stop_if_interrupted() {
  if (interrupted()) throw Interrupted();
}

}  // namespace kvbench::kvdump
