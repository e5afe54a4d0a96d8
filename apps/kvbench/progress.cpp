// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <cstdio>

#include <fmt/format.h>

#include "output.hpp"

namespace kvbench::app {

using std::chrono::duration;
using std::chrono::steady_clock;

Progress::Progress(std::string unit, bool quiet)
    : unit_(std::move(unit)), enabled_(!quiet && stderr_is_terminal()), start_(steady_clock::now()), last_(start_) {}

Progress::~Progress() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

void Progress::show(std::int64_t done, std::int64_t total) {
  const auto now = steady_clock::now();
  const double elapsed = duration<double>(now - start_).count();
  if (!enabled_ || elapsed < 2 || duration<double>(now - last_).count() < 0.1) return;
  last_ = now;
  shown_ = true;
  constexpr std::int64_t width = 30;
  const std::int64_t filled = total > 0 ? width * done / total : 0;
  const double rate = static_cast<double>(done) / elapsed;
  const double left = rate > 0 ? static_cast<double>(total - done) / rate : 0;
  fmt::print(stderr, "\r[{:<{}}] {}/{} {}  {:.2f}/s  {:.0f} s left\033[K", std::string(static_cast<std::size_t>(filled), '#'),
             width, done, total, unit_, rate, left);
  std::fflush(stderr);
}

}  // namespace kvbench::app
