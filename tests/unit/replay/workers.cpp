// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/run/workers.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>

using namespace kvbench;
using namespace kvbench::replay;

namespace {

void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

/// Waits until `count` reaches `wanted`; false where that takes longer than a minute.
bool reached(const std::atomic<int>& count, int wanted) {
  for (int i = 0; i < 60000 && count < wanted; ++i) rest();
  return count >= wanted;
}

}  // namespace

TEST_CASE("there are as many concurrent work items as threads, and each thread has its own backend") {
  for (const int threads : {1, 2, 3}) {
    CAPTURE(threads);
    std::atomic<int> started = 0;
    std::atomic<bool> together = true;
    std::mutex mutex;
    std::set<const Backend*> backends;
    run_work_items(3 * threads, {.threads = threads}, {}, [&](Backend& backend, std::size_t, const PartDone&) {
      ++started;
      if (!reached(started, threads)) together = false;  // the first work items wait for each other
      const std::lock_guard lock(mutex);
      backends.insert(&backend);
    });
    CHECK(started == 3 * threads);
    CHECK(together);
    CHECK(backends.size() == static_cast<std::size_t>(threads));
  }
}

TEST_CASE("an exception of the progress callback ends the call") {
  int called = 0;
  const ReplayHooks hooks{.progress = [&](double, Index) {
    if (++called == 2) throw std::domain_error("of the callback");
  }};
  CHECK_THROWS_AS(run_work_items(5, {.threads = 1}, hooks, [](Backend&, std::size_t, const PartDone&) {}),
                  std::domain_error);
  CHECK(called == 2);
}

TEST_CASE("progress counts finished work items and the finished parts of others") {
  std::vector<double> seen;
  const ReplayHooks hooks{.progress = [&](double done, Index total) {
    CHECK(total == 2);
    seen.push_back(done);
  }};
  run_work_items(2, {.threads = 1}, hooks, [](Backend&, std::size_t, const PartDone& part_done) { part_done(0.5); });
  CHECK(seen == std::vector<double>{0.5, 1, 1.5, 2});
}

TEST_CASE("a back end that is not available ends the call before any work item") {
  bool computed = false;
  const auto work = [&](Backend&, std::size_t, const PartDone&) { computed = true; };
  if (!cuda_available()) {
    CHECK_THROWS_AS(run_work_items(3, {.backend = "cuda", .threads = 2}, {}, work), std::runtime_error);
    CHECK(!computed);
  }
  run_work_items(0, {.backend = "cuda"}, {}, work);  // without work items no back end is created
  CHECK(!computed);
}

TEST_CASE("the number of threads in the options takes precedence; on a GPU the default is one") {
  CHECK(thread_count({.threads = 3}) == 3);
  CHECK(thread_count({}) >= 1);
  CHECK(thread_count({.backend = "cuda"}) == 1);
  CHECK(thread_count({.backend = "cuda", .threads = 2}) == 2);
}
