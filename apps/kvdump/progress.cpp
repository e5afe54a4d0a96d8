// SPDX-License-Identifier: Apache-2.0
#include <apps/kvdump/progress.hpp>

#include <cstdlib>

#include <fmt/core.h>
#include <unistd.h>

#include <apps/common/program.hpp>

namespace kvbench::kvdump {
namespace {

constexpr const char* erase_line = "\r\033[K";

}  // namespace

Progress::Progress(std::int64_t total_tokens, bool quiet)
    : total_(total_tokens),
      visible_(!quiet && isatty(STDERR_FILENO) == 1 && !std::getenv("NO_COLOR") && !std::getenv("CI")) {}

Progress::~Progress() {
  if (visible_) app::try_to_show(erase_line);
}

void Progress::advance(std::int64_t tokens) {
  done_ += tokens;
  const auto now = Clock::now();
  if (!visible_ || now - shown_ < std::chrono::milliseconds(200)) return;
  shown_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done_) / seconds;
  const double left = static_cast<double>(total_ - done_) / rate;
  app::try_to_show(
      fmt::format("{}kvdump: {} of {} tokens, {:.0f} tokens/s, {:.0f} s left", erase_line, done_, total_, rate, left));
}

void Progress::stage(const char* what) {
  if (visible_) app::try_to_show(fmt::format("{}kvdump: {}", erase_line, what));
}

}  // namespace kvbench::kvdump
