// SPDX-License-Identifier: Apache-2.0
// SIGINT, SIGTERM and SIGHUP: the first one asks the program to stop. Where it has not stopped within the grace period,
// because a long kernel or a library computes, or where a second signal comes, the process removes its temporary files
// and exits with 130.
#pragma once

#include <atomic>
#include <functional>
#include <string>

#include <kvbench/core/error.hpp>

namespace kvbench::app {

/// Waits for these signals from now on, in a thread of its own. To be called first in main(), once. A SIGHUP that is
/// ignored, as under nohup, stays ignored; programs that this one starts get signals as usual. Writing beyond the file
/// size limit is an error from now on, not a signal. `program` begins the message of a forced exit.
/// Throws IoError where no thread can be started.
void wait_for_stop_signals(const std::string& program);

/// The same request from inside the process, where another program waits for signals (Python). `false` takes it back.
void request_stop(bool requested);

/// Set once the user asked to stop.
const std::atomic<bool>& stop_requested();

/// Throws Interrupted where it is set.
inline void stop_if_requested() {
  if (stop_requested()) throw Interrupted();
}

/// What is done at a forced exit instead of the usual message, as long as this object exists. It runs in another
/// thread, while the work goes on in the others.
class AtForcedExit {
 public:
  explicit AtForcedExit(std::function<void()> act);
  ~AtForcedExit();
  AtForcedExit(const AtForcedExit&) = delete;
  AtForcedExit& operator=(const AtForcedExit&) = delete;
};

}  // namespace kvbench::app
