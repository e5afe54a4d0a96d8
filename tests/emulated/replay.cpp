// SPDX-License-Identifier: Apache-2.0
// Whole replays on an emulated device: workers and the thread that reads ahead use it concurrently, each on its own
// stream.
#include <cmath>
#include <cstring>

#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>

#include <support/small_trace.hpp>

#include "device.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

ReplayResults replay_on(const std::string& backend, const SmallTrace& trace, int threads = 1,
                        std::optional<std::size_t> read_ahead_bytes = {}) {
  const ReplayRequest request =
      request_of({&find_method("sink"), &find_method("snapkv"), &find_method("h2o"), &find_method("oracle-topk"),
                  &find_method("pyramidkv"), &find_method("chelsea")},
                 8);
  return replay::replay(
      trace.reader(), request,
      {.backend = backend, .threads = threads, .read_ahead_bytes = read_ahead_bytes, .keep_raw = true});
}

/// Calls check(cell, cell, name) for the cells of all heads.
template <class Check>
void for_each_result(const ReplayResults& a, const ReplayResults& b, Check check) {
  REQUIRE(a.heads.size() == b.heads.size());
  for (std::size_t h = 0; h < a.heads.size(); ++h) {
    REQUIRE(a.heads[h].results.size() == b.heads[h].results.size());
    for (std::size_t c = 0; c < a.heads[h].results.size(); ++c) {
      CAPTURE(h);
      CAPTURE(c);
      const ConfigurationResult &x = a.heads[h].results[c], &y = b.heads[h].results[c];
      CHECK_MESSAGE(x.status == Status::ok, x.reason);
      CHECK(x.status == y.status);
      REQUIRE(x.metrics.size() == y.metrics.size());
      check(x, y);
    }
  }
}

}  // namespace

TEST_CASE("a replay on the device answers as on the processor") {
  const SmallTrace trace;
  for_each_result(replay_on("cuda", trace), replay_on("cpu", trace),
                  [](const ConfigurationResult& device, const ConfigurationResult& processor) {
                    for (std::size_t r = 0; r < device.metrics.size(); ++r) {
                      const double expected = metric(processor, r, Metric::rel_err);
                      CHECK(std::abs(metric(device, r, Metric::rel_err) - expected) <= 1e-4 * std::max(1.0, expected));
                    }
                  });
  CHECK(emulated::fault() == "");
}

TEST_CASE("a replay on the device has the same bits with several workers and without reading ahead") {
  const SmallTrace trace;
  const ReplayResults one = replay_on("cuda", trace);
  for (const int threads : {1, 3}) {
    CAPTURE(threads);
    const auto read_ahead_bytes = threads == 1 ? std::optional<std::size_t>(0) : std::nullopt;
    for_each_result(replay_on("cuda", trace, threads, read_ahead_bytes), one,
                    [](const ConfigurationResult& a, const ConfigurationResult& b) {
                      for (std::size_t r = 0; r < a.metrics.size(); ++r) {
                        CHECK(std::memcmp(&a.metrics[r], &b.metrics[r], sizeof a.metrics[r]) == 0);
                      }
                    });
  }
  emulated::check_memory();
  CHECK(emulated::fault() == "");
}

TEST_CASE("a replay on a device without enough memory ends with a sentence on what would fit") {
  const SmallTrace trace;
  emulated::limit_memory(std::size_t{16} << 10);
  std::string message;
  try {
    replay_on("cuda", trace);
  } catch (const OutOfDeviceMemory& fault) {
    message = fault.what();
  }
  emulated::limit_memory(std::size_t{1} << 30);
  CHECK(contains(message, "The GPU's memory is exhausted"));
  CHECK_MESSAGE(contains(message, "The current work item has 40 tokens"), message);
  // Freed memory can be allocated again.
  CHECK_NOTHROW(replay_on("cuda", trace));
  CHECK(make_cuda_backend()->memory()->held == 0);
  CHECK(emulated::fault() == "");
}
