// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace kvbench::app {

/// A progress bar with rate and remaining time on stderr, shown after two seconds; not shown where stderr is not a terminal,
/// where NO_COLOR or CI is set, and where `quiet`.
class Progress {
 public:
  Progress(std::string unit, bool quiet);
  ~Progress();  ///< clears the line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::int64_t done, std::int64_t total);

 private:
  std::string unit_;
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point start_, last_;
};

}  // namespace kvbench::app
