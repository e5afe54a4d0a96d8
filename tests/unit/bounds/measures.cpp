// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/measures.hpp>

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include <kvbench/bounds/clusterability.hpp>
#include <kvbench/bounds/similarity_by_distance.hpp>
#include <unit/replay/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::testing;

namespace {

const std::vector<Measure> both = {Measure::clusterability, Measure::similarity_by_distance};

std::vector<double> curve_of(const std::vector<MeasureRow>& rows, std::int64_t layer, Index head, Measure measure,
                             const std::string& array) {
  std::vector<double> values;
  for (const MeasureRow& r : rows) {
    if (r.layer != layer || r.kv_head != head || r.measure != measure || r.array != array) continue;
    CHECK(r.x == static_cast<Index>(values.size()) + 1);
    values.push_back(r.value);
  }
  return values;
}

}  // namespace

TEST_CASE("every head has a curve of each measure") {
  const SmallTrace trace;
  const auto rows = measure_trace(trace.reader(), {.backend = "ref", .threads = 1}, both);
  const auto backend = make_ref_backend();
  for (std::size_t layer = 0; layer < 2; ++layer) {
    for (Index head = 0; head < 2; ++head) {
      const Arrays arrays(trace.reader(), layer, head);
      const auto keys = backend->adopt(std::vector(arrays.keys), 40, 8),
                 values = backend->adopt(std::vector(arrays.values), 40, 6);
      const auto l = static_cast<std::int64_t>(layer);
      CHECK(curve_of(rows, l, head, Measure::clusterability, "keys") == clusterability(keys, 64, *backend));
      CHECK(curve_of(rows, l, head, Measure::clusterability, "values") == clusterability(values, 64, *backend));
      CHECK(curve_of(rows, l, head, Measure::clusterability, "both").size() == 40);
      CHECK(curve_of(rows, l, head, Measure::similarity_by_distance, "keys") == similarity_by_distance(keys, 255, *backend));
    }
  }
  CHECK(rows.size() == 4 * (3 * 40 + 39));
  CHECK(rows.front().count == 40);
  CHECK(rows.back().count == 1);  // one pair of tokens is 39 apart
}

TEST_CASE("measures do not depend on the number of threads") {
  const SmallTrace trace;
  const auto one = measure_trace(trace.reader(), {.threads = 1}, both),
             three = measure_trace(trace.reader(), {.threads = 3}, both);
  REQUIRE(one.size() == three.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    CHECK(one[i].value == three[i].value);
    CHECK(std::tuple(one[i].layer, one[i].kv_head, one[i].array, one[i].x) ==
          std::tuple(three[i].layer, three[i].kv_head, three[i].array, three[i].x));
  }
}

TEST_CASE("the request selects heads") {
  const SmallTrace trace;
  const auto rows = measure_trace(trace.reader(), {.layers = {1}, .kv_heads = {0}}, {Measure::similarity_by_distance});
  CHECK(rows.size() == 39);
  CHECK(std::ranges::all_of(rows, [](const MeasureRow& r) { return r.layer == 1 && r.kv_head == 0; }));
  CHECK(contains(message_of<Error>([&] { measure_trace(trace.reader(), {.layers = {9}}, both); }), "layer 9"));
}

TEST_CASE("an interruption stops the measures") {
  const SmallTrace trace;
  const std::atomic<bool> stop = true;
  CHECK_THROWS_AS(measure_trace(trace.reader(), {}, both, {.stop = &stop}), Interrupted);
}
