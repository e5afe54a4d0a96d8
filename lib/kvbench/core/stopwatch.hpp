// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <ctime>

#include <kvbench/kernels/backend.hpp>

namespace kvbench {

/// Seconds of work since its construction: on a host backend the processor time of this thread, which does not depend
/// on other load of the machine; on a device the wall time from the completion of all work queued before to the
/// completion of all work queued since.
class Stopwatch {
 public:
  explicit Stopwatch(Backend& backend) : backend_(backend), on_host_(backend.device() != "cuda") {
    if (!on_host_) word_ = backend.allocate<float>(1);
    start_ = now();
  }
  double seconds() const { return now() - start_; }

 private:
  double now() const {
    if (on_host_) {
      std::timespec time{};
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
    }
    backend_.read(word_);  // waits for queued work
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }

  Backend& backend_;
  bool on_host_;
  Buffer<float> word_;
  double start_ = 0;
};

}  // namespace kvbench
