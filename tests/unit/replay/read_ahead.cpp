// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>
#include <kvbench/replay/exact/read_ahead.hpp>
#include <kvbench/replay/run/devices.hpp>
#include <kvbench/replay/run/head_memory.hpp>

#include <support/fakes.hpp>
#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

/// All numbers of a head.
std::vector<float> contents(const Head& head, Backend& backend) {
  std::vector<float> all = head.queries;
  for (const Buffer<const float>& buffer : {head.tokens.keys, head.tokens.values, head.prompt.observed,
                                            head.prompt.column_sums, head.prompt.keys_pre_rope}) {
    const std::vector<float> part = backend.read(buffer);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

std::vector<float> contents(const trace::TraceInfo& info, const WorkItem& item, std::vector<HeadSlabs> slabs,
                            Backend& backend) {
  std::vector<float> all;
  for (std::size_t h = 0; h < slabs.size(); ++h) {
    const auto part = contents(place_head(info, item.prompt, item.place(h), std::move(slabs[h]), backend), backend);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

TEST_CASE("work items that were read ahead equal those loaded directly, in any order of take()") {
  const SmallTrace trace;
  const trace::TraceInfo& info = trace.reader().info();
  const MethodInfo one = fake_two_sets(), layer = fake_shared_layer();
  const ReplayPlan plan = make_plan(info, request_of({&one, &layer}, 5));
  REQUIRE(plan.work_items.size() == 6);
  for (const std::size_t largest : {std::size_t{0}, std::size_t{1} << 30}) {
    for (const std::vector<std::size_t>& order : {std::vector<std::size_t>{0, 1, 2, 3, 4, 5}, {1, 0, 2, 4, 3, 5}}) {
      ReadAhead slabs(trace.reader(), plan, 2, largest);
      for (const std::size_t u : order) {
        const WorkItem& item = plan.work_items[u];
        std::vector<float> expected;
        for (std::size_t h = 0; h < item.kv_heads.size(); ++h) {
          const auto part = contents(load_head(trace.reader(), item.prompt, item.place(h), ref()), ref());
          expected.insert(expected.end(), part.begin(), part.end());
        }
        CHECK(contents(info, item, slabs.take(u, ref()), ref()) == expected);
      }
    }
  }
}

TEST_CASE("slab_bytes counts every array once") {
  // 40 tokens of d = 8 and dv = 6, and 2 query heads: (8 + 6 + 2 column sums) * 40 and queries of 2 * 8 * 40 numbers.
  const SmallTrace trace;
  CHECK(slab_bytes(trace.reader().info(), {}) == 4 * (16 * 40 + 2 * 8 * 40));
}

TEST_CASE("results do not depend on reading ahead") {
  const SmallTrace trace;
  const MethodInfo one = fake_two_sets(), layer = fake_shared_layer();
  for (const int threads : {1, 3}) {
    const ReplayRequest request = request_of({&one, &find_method("subgen"), &layer}, 5);
    const ReplayResults without = replay::replay(trace.reader(), request, {.threads = threads, .read_ahead_bytes = 0});
    const ReplayResults with = replay::replay(trace.reader(), request, {.threads = threads});
    REQUIRE(with.heads.size() == without.heads.size());
    for (std::size_t h = 0; h < with.heads.size(); ++h) {
      for (std::size_t c = 0; c < with.configurations.size(); ++c) {
        const ConfigurationResult &a = with.heads[h].results[c], &b = without.heads[h].results[c];
        CHECK(a.status == b.status);
        CHECK(a.peak_bytes == b.peak_bytes);
        REQUIRE(a.metrics.size() == b.metrics.size());
        for (std::size_t r = 0; r < a.metrics.size(); ++r) {
          CHECK(metric(a, r, Metric::rel_err) == metric(b, r, Metric::rel_err));
        }
      }
    }
  }
}

TEST_CASE("the message for exhausted GPU memory names the number of tokens that would fit") {
  // 600 MiB held and 1400 MiB requested, of 1000 MiB: half of the 8000 tokens would have fitted.
  constexpr std::size_t mib = 1 << 20;
  const OutOfDeviceMemory fault(1400 * mib, {.limit = 1000 * mib, .held = 600 * mib, .peak = 700 * mib}, "No memory.");
  const std::string single = explained(fault, {.tokens = 8000}).what();
  CHECK(contains(single, "No memory. "));
  CHECK(contains(single, "8000 tokens and 1 kv head;"));
  CHECK(contains(single, "up to about 4000 tokens"));
  CHECK(contains(single, "`backend` to cpu"));
  CHECK(contains(explained(fault, {.tokens = 8000, .heads = 8}).what(), "leave these methods out"));
  CHECK(contains(explained(fault, {.tokens = 8000, .heads = 8, .threads = 3}).what(), "`threads` to 1"));
}

TEST_CASE("cuda is available or rejected with a reason, and auto takes the best available") {
  CHECK(choose_device("cpu").backend == "cpu");
  CHECK(choose_device("ref").backend == "ref");
  const DeviceChoice automatic = choose_device("auto");
  CHECK(automatic.note.empty() == cuda_available());
  if (cuda_available()) {
    CHECK(choose_device("cuda").backend == "cuda");
    CHECK(automatic.backend == "cuda");
  } else {
    CHECK(automatic.backend == "cpu");
    CHECK(contains(automatic.note, cuda_unusable()));
    CHECK(message_of<Error>([] {
            choose_device("cuda");
          }).starts_with("`backend` is cuda, which cannot be used: " + cuda_unusable()));
  }
}
