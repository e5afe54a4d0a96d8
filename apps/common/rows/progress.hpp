// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

namespace kvbench::app {

/// How far the work is whose Progress was shown last, for a program that shows it in its own way.
struct ProgressState {
  double done = 0;
  std::int64_t total = 0;  ///< 0: nothing is in progress
  std::string unit;
};
ProgressState latest_progress();

/// A progress bar with elapsed and remaining time on stderr, shown after two seconds and drawn again every second; not
/// shown where stderr is not a terminal, where NO_COLOR or CI is set, and where `quiet`. Thread-safe.
class Progress {
 public:
  Progress(std::string unit, bool quiet);
  ~Progress();  ///< clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// `done` counts units, with parts of those in progress.
  void show(double done, std::int64_t total);

 private:
  void draw(const std::stop_token& stop);

  std::string unit_;
  const std::chrono::steady_clock::time_point start_;
  std::chrono::steady_clock::time_point reported_ = start_;  ///< when show() was called last
  std::mutex mutex_;
  double done_ = 0;
  std::int64_t total_ = 0;
  bool shown_ = false;
  std::jthread drawing_;  ///< last: it uses the other members, and stops first
};

}  // namespace kvbench::app
