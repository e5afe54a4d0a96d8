// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/measures/measures.hpp>

#include <algorithm>

#include <doctest/doctest.h>

#include <kvbench/bounds/measures/curves.hpp>
#include <kvbench/replay/plan/plan.hpp>
#include <kvbench/replay/run/workers.hpp>
#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::replay;
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

/// Measures of all heads of the small trace, in order.
std::vector<MeasureRow> measure_all(const SmallTrace& trace, const std::string& device) {
  const auto backend = make_backend({.backend = device});
  std::vector<MeasureRow> rows;
  for (const HeadPlace& place : select_heads(trace.reader().info(), {})) {
    const auto part = measure_head(trace.reader(), place, both, *backend);
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return rows;
}

}  // namespace

TEST_CASE("every head has a curve of each measure") {
  const SmallTrace trace;
  const auto rows = measure_all(trace, "ref");
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
      CHECK(curve_of(rows, l, head, Measure::similarity_by_distance, "keys") ==
            similarity_by_distance(keys, 255, *backend));
    }
  }
  CHECK(rows.size() == 4 * (3 * 40 + 39));
  CHECK(rows.front().count == 40);
  CHECK(rows.back().count == 1);  // one pair of tokens is 39 apart
}

TEST_CASE("rows identify their head and measure") {
  const SmallTrace trace;
  const auto backend = make_cpu_backend(best_isa());
  const auto rows = measure_head(trace.reader(), {0, 1, 1}, {Measure::similarity_by_distance}, *backend);
  CHECK(rows.size() == 39);
  CHECK(std::ranges::all_of(rows, [](const MeasureRow& r) { return r.layer == 1 && r.kv_head == 1; }));
  CHECK(rows.front().trace == "small.h5");
  CHECK(rows.front().sha256 == trace.reader().sha256().substr(0, 12));
}

TEST_CASE("an interruption stops the measures") {
  const SmallTrace trace;
  const auto backend = make_cpu_backend(best_isa());
  const std::atomic<bool> stop = true;
  CHECK_THROWS_AS(measure_head(trace.reader(), {0, 0, 0}, both, *backend, &stop), Interrupted);
}
