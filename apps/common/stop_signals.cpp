// SPDX-License-Identifier: Apache-2.0
#include <apps/common/stop_signals.hpp>

#include <csignal>
#include <cstring>
#include <mutex>
#include <semaphore>

#include <fmt/core.h>
#include <pthread.h>
#include <unistd.h>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/core/error.hpp>

#include <apps/common/program.hpp>

namespace kvbench::app {
namespace {

constexpr timespec grace_period = {.tv_sec = 1, .tv_nsec = 0};

/// Never destroyed: the waiting thread runs until the process ends.
struct Waiting {
  std::atomic<bool> requested = false;
  sigset_t signals{};
  std::string program;
  std::binary_semaphore started{0};  ///< by the thread; a process may run several programs, one after the other
  std::mutex acting;
  std::function<void()> act;
};
Waiting& waiting() {
  static auto* state = new Waiting;
  return *state;
}

void* wait_and_exit(void*) {
  Waiting& state = waiting();
  state.started.release();
  int number = 0;
  sigwait(&state.signals, &number);
  state.requested = true;
  sigtimedwait(&state.signals, nullptr, &grace_period);  // ends early with a second signal
  const std::lock_guard lock(state.acting);
  if (::isatty(STDERR_FILENO) != 0) try_to_show("\r\033[K");  // clears the progress bar
  try {
    if (state.act)
      state.act();
    else
      say(state.program, "interrupted; outputs that were not complete are removed");
  } catch (const std::exception& error) {
    try_to_show(fmt::format("{}: {}\n", state.program, error.what()));
  }
  exit_without_outputs(was_interrupted);
}

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

void wait_for_stop_signals(const std::string& program) {
  Waiting& state = waiting();
  state.program = program;
  sigemptyset(&state.signals);
  sigaddset(&state.signals, SIGINT);
  sigaddset(&state.signals, SIGTERM);
  if (!is_ignored(SIGHUP)) sigaddset(&state.signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &state.signals, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{1} << 20);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  const int cause = pthread_create(&thread, &attributes, &wait_and_exit, nullptr);
  pthread_attr_destroy(&attributes);
  if (cause != 0)
    throw IoError("no thread can be started: {}; raise the limit of memory or of processes", std::strerror(cause));
  state.started.acquire();  // in a process that is forked while a thread starts, locks of the C library may stay taken
}

void request_stop(bool requested) { waiting().requested = requested; }

const std::atomic<bool>& stop_requested() { return waiting().requested; }

AtForcedExit::AtForcedExit(std::function<void()> act) {
  const std::lock_guard lock(waiting().acting);
  waiting().act = std::move(act);
}

AtForcedExit::~AtForcedExit() {
  const std::lock_guard lock(waiting().acting);
  waiting().act = nullptr;
}

}  // namespace kvbench::app
