// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <kvbench/core/error.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/replay.hpp>
#include <kvbench/replay/run/devices.hpp>
#include <kvbench/replay/run/head_memory.hpp>

#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

/// One layer of two kv heads, d = 128, dv = 64, one query head each, 1000 tokens, 10 queries.
trace::TraceInfo described(std::int64_t tokens) {
  trace::TraceInfo trace{.num_layers = 1, .num_query_heads = 2, .num_kv_heads = 2, .head_dim = 128, .value_dim = 64};
  trace::LayerInfo layer;
  for (std::int64_t i = 0; i < 10; ++i) layer.query_positions.push_back(tokens - 10 + i);
  trace.prompts = {{.num_tokens = tokens, .prompt_tokens = tokens - 10, .layers = {layer}}};
  return trace;
}

ReplayPlan planned(const char* method, const trace::TraceInfo& trace, ReplayRequest& request,
                   const std::vector<Assignment>& settings = {}) {
  const MethodInfo& info = find_method(method);
  request.methods = {{&info, info.bind(settings)}};
  request.protocol = Protocol::prefill;
  request.window = 10;
  request.budgets = {Budget::parse("100")};
  return make_plan(trace, request);
}

}  // namespace

TEST_CASE("the bytes of a work item, computed by hand") {
  trace::TraceInfo trace = described(1000);
  ReplayRequest request;
  const auto bytes = [&] { return work_item_bytes(trace, planned("sink", trace, request).work_items[0]); };
  // 64e6 fixed, 4 * 40e6 of logits and softmax rows; keys and values 1000 * 192 * 4 B = 768000, five eighths of it
  // again; queries twice 10 * 128 * 4; two sums of attention per token, 8 B each.
  const double plain = 224e6 + 768000 * 1.625 + 2 * 5120 + 16000;
  CHECK(bytes() == doctest::Approx(plain));
  trace.prompts[0].layers[0].column_sums_end = 990;  // 1000 * 4 B
  CHECK(bytes() == doctest::Approx(plain + 4000));
  trace.prompts[0].layers[0].keys_pre_rope = true;  // 1000 * 128 * 4 B
  CHECK(bytes() == doctest::Approx(plain + 4000 + 512000));
}

TEST_CASE("decoded rows count once per configuration that stores tokens in fewer bits") {
  const trace::TraceInfo trace = described(1000);
  ReplayRequest plain, stored;
  const double without = work_item_bytes(trace, planned("sink", trace, plain).work_items[0]);
  const double with = work_item_bytes(trace, planned("sink+int8", trace, stored).work_items[0]);
  CHECK(with - without == doctest::Approx(2.5 * 768000));
  stored.budgets.push_back(Budget::parse("200"));
  CHECK(work_item_bytes(trace, make_plan(trace, stored).work_items[0]) - without == doctest::Approx(2 * 2.5 * 768000));
}

TEST_CASE("as many threads run as fit into memory, and a note gives the reason for fewer") {
  const trace::TraceInfo trace = described(1000);
  ReplayRequest request;
  const ReplayPlan plan = planned("sink", trace, request);  // about 225 MB per head
  RunOptions options{.threads = 4, .memory = 1000e6};
  CHECK(plan_threads(trace, plan, options).threads == 4);
  CHECK(plan_threads(trace, plan, options).note.empty());
  CHECK(plan_threads(trace, plan, options).spare ==
        doctest::Approx(1000e6 - 4 * work_item_bytes(trace, plan.work_items[0])));
  options.memory = 700e6;
  const ThreadPlan fewer = plan_threads(trace, plan, options);
  CHECK(fewer.threads == 3);
  CHECK(fewer.spare == doctest::Approx(700e6 - 3 * work_item_bytes(trace, plan.work_items[0])));
  CHECK(contains(fewer.note, "3 of 4 threads run"));
  CHECK(contains(fewer.note, "`memory` allows 0.7 GiB"));
  options.memory = 190e6;
  CHECK_THROWS_WITH_AS(plan_threads(trace, plan, options),
                       "a head of 1000 tokens needs up to 0.21 GiB, and `memory` allows 0.18 GiB; raise `memory`, or "
                       "use a shorter trace",
                       Error);
  options = {.threads = 1};
  CHECK(plan_threads(trace, plan, options).threads == 1);
  CHECK(default_memory() > 1e8);
}

TEST_CASE("one compressed chunk needs memory beside the heads, twice: as stored and inflated") {
  trace::TraceInfo trace = described(1000);
  ReplayRequest request;
  const ReplayPlan plan = planned("sink", trace, request);
  const RunOptions options{.threads = 1, .memory = 700e6};
  const double spare = plan_threads(trace, plan, options).spare;
  trace.largest_chunk = 100'000'000;
  CHECK(plan_threads(trace, plan, options).spare == doctest::Approx(spare - 200e6));
  trace.largest_chunk = 400'000'000;
  CHECK_THROWS_WITH_AS(plan_threads(trace, plan, options),
                       doctest::Contains("(0.75 GiB for a compressed chunk; h5repack"), Error);
}

TEST_CASE("all heads of a layer are in memory together only for methods with dependent heads") {
  const trace::TraceInfo trace = described(4'000'000);  // 5 GB per head
  ReplayRequest request;
  const RunOptions options{.threads = 1, .memory = 8e9};
  const ReplayPlan apart = planned("chelsea", trace, request);
  CHECK(apart.work_items.size() == 2);
  CHECK(apart.work_items[1].kv_heads == std::vector<Index>{1});
  CHECK(apart.work_items[1].first_result == 1);
  CHECK_NOTHROW(plan_threads(trace, apart, options));
  const ReplayPlan together = planned("chelsea", trace, request, {{"outliers", "auto"}});
  CHECK(together.work_items.size() == 1);
  CHECK(together.work_items[0].kv_heads.size() == 2);
  CHECK_THROWS_WITH_AS(plan_threads(trace, together, options), doctest::Contains("all 2 kv heads of a layer"), Error);
}

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
