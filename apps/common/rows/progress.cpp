// SPDX-License-Identifier: Apache-2.0
#include <apps/common/rows/progress.hpp>

#include <condition_variable>

#include <fmt/format.h>

#include <apps/common/program.hpp>
#include <apps/common/rows/output.hpp>

namespace kvbench::app {

using std::chrono::duration;
using std::chrono::steady_clock;

namespace {

struct Latest {
  std::mutex mutex;
  ProgressState state;
};
Latest& latest() {
  static auto* shown = new Latest;  // never destroyed: the work may outlive main()
  return *shown;
}
void set_latest(ProgressState state) {
  const std::lock_guard lock(latest().mutex);
  latest().state = std::move(state);
}

}  // namespace

ProgressState latest_progress() {
  const std::lock_guard lock(latest().mutex);
  return latest().state;
}

Progress::Progress(std::string unit, bool quiet) : unit_(std::move(unit)), start_(steady_clock::now()) {
  if (!quiet && stderr_is_terminal()) drawing_ = std::jthread([this](const std::stop_token& stop) { draw(stop); });
}

Progress::~Progress() {
  set_latest({});
  if (!drawing_.joinable()) return;
  drawing_.request_stop();
  drawing_.join();
  if (shown_) try_to_show("\r\033[K");
}

void Progress::show(double done, std::int64_t total) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  total_ = total;
  reported_ = steady_clock::now();
  set_latest({done, total, unit_});
}

void Progress::draw(const std::stop_token& stop) {
  constexpr int width = 30;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex_);
  for (auto wait = std::chrono::seconds(2);; wait = std::chrono::seconds(1)) {
    if (stopped.wait_for(lock, stop, wait, [&] { return stop.stop_requested(); })) return;
    if (total_ == 0) continue;
    const auto now = steady_clock::now();
    const double elapsed = duration<double>(now - start_).count(), part = done_ / static_cast<double>(total_);
    // At the rate up to the last report. Negative where the work since then takes longer than that predicts for all the
    // rest.
    const double left =
        duration<double>(reported_ - start_).count() / part * (1 - part) - duration<double>(now - reported_).count();
    try_to_show(fmt::format("\r[{:<{}}] {:.1f}/{} {}  {:.0f} s, {} left\033[K",
                            std::string(static_cast<std::size_t>(width * part), '#'), width, done_, total_, unit_,
                            elapsed, part > 0 && left >= 0 ? fmt::format("{:.0f} s", left) : "unknown time"));
    shown_ = true;
  }
}

}  // namespace kvbench::app
