// SPDX-License-Identifier: Apache-2.0
#include <apps/common/stop_signals.hpp>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <mutex>
#include <semaphore>

#include <fmt/core.h>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/core/error.hpp>

#include <apps/common/program.hpp>

namespace kvbench::app {
namespace {

constexpr time_t grace_period = 1;  // seconds

/// Never destroyed: the waiting thread runs until the process ends.
struct Waiting {
  std::atomic<bool> requested = false;
  sem_t received{};  ///< counts signals: what may wake a thread from inside a handler
  pid_t process = 0;
  std::string program;
  std::binary_semaphore started{0};  ///< by the thread; a process may run several programs, one after the other
  std::mutex acting;
  std::function<void()> act;
};
Waiting& waiting() {
  static auto* state = new Waiting;
  return *state;
}

/// A handler, because programs that this one starts would inherit signals that are blocked. In a process that was
/// forked from this one, where no thread waits, the signal does what it does by default.
void receive(int number) {
  Waiting& state = waiting();
  if (getpid() == state.process) {
    sem_post(&state.received);
    return;
  }
  std::signal(number, SIG_DFL);
  raise(number);
}

void* wait_and_exit(void*) {
  Waiting& state = waiting();
  state.started.release();
  while (sem_wait(&state.received) != 0) {  // interrupted by a signal of another kind
  }
  state.requested = true;
  timespec end{};
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += grace_period;
  while (sem_timedwait(&state.received, &end) != 0 && errno == EINTR) {  // ends early with a second signal
  }
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
  state.process = getpid();
  sem_init(&state.received, 0, 0);
  struct sigaction action {};
  action.sa_handler = &receive;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    if (number != SIGHUP || !is_ignored(number)) sigaction(number, &action, nullptr);
  }
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
