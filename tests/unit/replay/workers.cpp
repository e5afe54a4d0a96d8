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

TEST_CASE("work items start in order, and each of them once") {
  for (const std::size_t threads : {1u, 2u, 4u}) {
    CAPTURE(threads);
    std::mutex mutex;
    std::vector<std::size_t> order;
    run_work_items(200, {.threads = static_cast<int>(threads)}, {}, [&](Backend&, std::size_t u, const PartDone&) {
      const std::lock_guard lock(mutex);
      order.push_back(u);
    });
    REQUIRE(order.size() == 200);
    CHECK(std::set<std::size_t>(order.begin(), order.end()).size() == 200);
    // Each of the other threads may have started one work item that it has not recorded yet.
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] <= i + threads - 1);
  }
}

TEST_CASE("the first exception stops the other threads at their next work item and is thrown") {
  std::atomic<int> computed = 0;
  const auto work = [&](Backend&, std::size_t u, const PartDone&) {
    if (u == 3) throw std::out_of_range("of work item 3");
    rest();
    ++computed;
  };
  CHECK_THROWS_WITH_AS(run_work_items(2000, {.threads = 2}, {}, work), "of work item 3", std::out_of_range);
  CHECK(computed < 1000);
  int called = 0;
  const ReplayHooks hooks{.progress = [&](double, Index) {
    if (++called == 2) throw std::domain_error("of the callback");
  }};
  CHECK_THROWS_AS(run_work_items(5, {.threads = 1}, hooks, [](Backend&, std::size_t, const PartDone&) {}),
                  std::domain_error);
  CHECK(called == 2);
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
