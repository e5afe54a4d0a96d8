// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <ctime>

#include <kvbench/kernels/backend.hpp>

namespace kvbench {

/// Seconds of work since its construction: on a host backend the processor time of this thread, which neighbours on a busy
/// machine do not change; on a device the time on the clock.
class Stopwatch {
 public:
  explicit Stopwatch(const Backend& backend) : on_host_(backend.device() != "cuda"), start_(now()) {}
  double seconds() const { return now() - start_; }

 private:
  double now() const {
    if (on_host_) {
      std::timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  bool on_host_;
  double start_;
};

}  // namespace kvbench
