// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/parallel_for.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/core/first_error.hpp>

using namespace kvbench;

namespace {

void rest() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

/// Waits until `count` reaches `wanted`; false where that takes longer than a minute.
bool reached(const std::atomic<std::size_t>& count, std::size_t wanted) {
  for (int i = 0; i < 60000 && count < wanted; ++i) rest();
  return count >= wanted;
}

}  // namespace

TEST_CASE("a loop runs on as many threads as wanted, which have their own numbers") {
  for (const std::size_t threads : {1u, 2u, 3u}) {
    CAPTURE(threads);
    std::atomic<std::size_t> started = 0;
    std::atomic<bool> together = true;
    std::mutex mutex;
    std::set<std::pair<std::size_t, std::thread::id>> seen;
    parallel_for(3 * threads, threads, [&](std::size_t, std::size_t thread) {
      ++started;
      if (!reached(started, threads)) together = false;  // the first calls wait for each other
      const std::lock_guard lock(mutex);
      seen.emplace(thread, std::this_thread::get_id());
    });
    CHECK(together);
    REQUIRE(seen.size() == threads);
    std::size_t next = 0;
    for (const auto& [number, id] : seen) CHECK(number == next++);
  }
}

TEST_CASE("the calls of a loop start in order, and each of them once") {
  for (const std::size_t threads : {1u, 2u, 4u}) {
    CAPTURE(threads);
    std::mutex mutex;
    std::vector<std::size_t> order;
    parallel_for(200, threads, [&](std::size_t i, std::size_t) {
      const std::lock_guard lock(mutex);
      order.push_back(i);
    });
    REQUIRE(order.size() == 200);
    CHECK(std::set<std::size_t>(order.begin(), order.end()).size() == 200);
    // Each of the other threads may have started one call that it has not recorded yet.
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] <= i + threads - 1);
  }
}

TEST_CASE("the first exception stops the other threads before their next call and is thrown") {
  std::atomic<int> finished = 0;
  const auto work = [&](std::size_t i, std::size_t) {
    if (i == 3) throw std::out_of_range("of call 3");
    rest();
    ++finished;
  };
  CHECK_THROWS_WITH_AS(parallel_for(2000, 2, work), "of call 3", std::out_of_range);
  CHECK(finished < 1000);
}

TEST_CASE("a loop without calls does nothing") {
  parallel_for(0, 4, [](std::size_t, std::size_t) { FAIL("called"); });
}

TEST_CASE("a given number of threads takes precedence over the default") {
  CHECK(allowed_threads(3) == 3);
  CHECK(allowed_threads(0) >= 1);
}

TEST_CASE("of several exceptions the first one is kept, until it is thrown") {
  FirstError error;
  CHECK(error.attempt([] {}));
  CHECK(!error.attempt([] { throw std::domain_error("the first"); }));
  CHECK(!error.attempt([] { FAIL("called after an exception"); }));
  CHECK(error.kept());
  CHECK_THROWS_WITH_AS(error.rethrow(), "the first", std::domain_error);
  CHECK(!error.kept());
  error.rethrow();
  CHECK(error.attempt([] {}));
}
