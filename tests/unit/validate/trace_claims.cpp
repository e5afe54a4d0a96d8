// SPDX-License-Identifier: Apache-2.0
// Claims that replay a trace, and costs.

#include <doctest/doctest.h>

#include <kvbench/bounds/check/verdicts.hpp>
#include <kvbench/bounds/clusterkv/checks.hpp>
#include <kvbench/bounds/cost/work.hpp>
#include <kvbench/bounds/trials/paired_replay.hpp>
#include <kvbench/validate/validate.hpp>

#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::replay;
using doctest::Approx;

TEST_CASE("important tokens, their overlap and their number per page") {
  const std::vector<double> scores = {1, 5, 5, 2, 9};
  CHECK(most_important(scores, 1) == std::vector<Index>{4});
  CHECK(most_important(scores, 2) == std::vector<Index>{1, 4});  // of equals the lower
  CHECK(most_important(scores, 9).size() == 5);
  CHECK(overlap({1, 4}, {1, 2, 4}) == 1);
  CHECK(overlap({1, 4}, {2, 4}) == 0.5);
  CHECK(tokens_per_page({0, 1, 15, 16, 40}, 16) == Approx(5.0 / 3));
}

TEST_CASE("16 neighbouring queries of a head are one unit") {
  const testing::SmallTrace trace;
  std::vector<CheckRow> rows;
  const ValidateOptions options;
  const auto backend = make_cpu_backend();
  const CheckContext context{
      .reader = &trace.reader(), .options = options, .backend = *backend, .rows = rows, .check = "x"};
  const PairedReplay replay(
      context, {.methods = {method_choice("sink")}, .budgets = {Budget::tokens(10)}, .protocol = Protocol::prefill});
  const std::vector<double> units = replay.units({0, 0});
  REQUIRE(units.size() == 4);  // 2 layers of 2 heads, 12 queries a head
  CHECK(replay.unit_heads() == std::vector<std::size_t>{0, 1, 2, 3});
  double sum = 0, count = 0;
  for (const MetricRow& row : replay.results().heads[1].results[0].metrics) sum += double{row[0]}, ++count;
  CHECK(units[1] == Approx(sum / count));
  const std::vector<double> places = replay.places({0, 0});
  REQUIRE(places.size() == 2);
  CHECK(places[1] == Approx((units[2] + units[3]) / 2));
}

TEST_CASE("growth is the slope of the logarithms") {
  CHECK(growth({10, 100, 1000}, {3, 300, 30000}) == Approx(2));
  CHECK(growth({10, 100}, {0, 0}) == 0);
}

TEST_CASE("a cost above what a paper states is a fault") {
  std::vector<CheckRow> rows;
  const ValidateOptions options;
  const auto backend = make_cpu_backend();
  CheckContext context{.options = options, .backend = *backend, .rows = rows, .check = "x.cost"};
  const CostCase what{"chelsea", {}, [](Index n) { return n / 2; }};
  add_growth(context, "quadratic", what,
             {.sizes = {512, 1024, 2048}, .values = {1, 4, 16}, .stated = 1, .complexity = "O(n)"});
  add_growth(context, "linear", what,
             {.sizes = {512, 1024, 2048}, .values = {1, 2, 4}, .stated = 1, .complexity = "O(n)"});
  judge(rows, 1e-3);
  CHECK(is_fault(rows[0]));
  CHECK(holds(rows[1].verdict));
}

// Each A token of the 256 - 80 middle ones has one chunk of partners: 88 x 88 cosines of 16 numbers.
TEST_CASE("costs are the declared work of kernels and the bytes of the footprint") {
  const auto backend = make_cpu_backend();
  const CostCase exact{"exact", {}, [](Index n) { return n; }};
  const Work work = work_of(exact, 256, *backend);
  CHECK(work.compress_flops == 0);
  CHECK(work.bytes == 256 * 32 * 2);
  CHECK(work.query_flops > 256 * 32 * 2);
  const Work twice = work_of(exact, 512, *backend);
  CHECK(twice.query_flops == Approx(2 * work.query_flops).epsilon(0.05));
  const CostCase merged{"chelsea", {}, [](Index n) { return n / 2; }};
  CHECK(work_of(merged, 256, *backend).compress_flops >= 2 * 88 * 88 * 16);
}
