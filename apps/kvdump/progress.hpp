// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>

namespace kvbench::kvdump {

/// One line on stderr with rate and remaining time, updated at most five times per second. Not shown where stderr is
/// not a terminal, where NO_COLOR or CI is set, and where `quiet`.
class Progress {
 public:
  Progress(std::int64_t total_tokens, bool quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void advance(std::int64_t tokens);
  void stage(const char* what);  ///< shows the name of work that is not counted in tokens

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t total_;
  bool visible_;
  std::int64_t done_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = {};
};

}  // namespace kvbench::kvdump
