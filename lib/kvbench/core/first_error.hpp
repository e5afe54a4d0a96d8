// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

namespace kvbench {

/// Keeps the first exception of code that none may leave: a parallel region, or a callback of a C library.
class FirstError {
 public:
  /// Calls `work` unless an exception is kept, and keeps the one that it throws. Returns whether it was called and threw
  /// nothing. Several threads may call this at the same time.
  template <class F>
  bool attempt(F work) {
    if (kept_) return false;
    try {
      work();
      return true;
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_) first_ = std::current_exception();
      kept_ = true;
      return false;
    }
  }
  bool kept() const { return kept_; }

  /// Throws the exception that is kept, if any, and keeps it no longer.
  void rethrow() {
    kept_ = false;
    if (first_) std::rethrow_exception(std::exchange(first_, nullptr));
  }

 private:
  std::atomic<bool> kept_ = false;
  std::mutex mutex_;
  std::exception_ptr first_;
};

}  // namespace kvbench
