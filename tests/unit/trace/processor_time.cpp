// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <thread>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/trace/guard/untrusted_file.hpp>

using namespace kvbench;
using namespace kvbench::trace;

TEST_CASE("a file whose reading waits is good, one that keeps the processor busy is damaged") {
  CHECK_NOTHROW(try_in_child(
      "t.h5", [] { std::this_thread::sleep_for(std::chrono::milliseconds(2500)); }, 1));
  const auto spin = [] {
    for (std::atomic<int> i = 0;; ++i) {
    }
  };
  CHECK_THROWS_WITH_AS(try_in_child("t.h5", spin, 1),
                       "t.h5: its metadata keep a processor busy for 1 s: the file is damaged; copy or write it again.",
                       Error);
}
