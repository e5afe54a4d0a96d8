// SPDX-License-Identifier: Apache-2.0
// Rate of false alarms: checks run repeatedly on the correct methods with different seeds, at the smallest sizes that
// are allowed and on data with heavy tails.
#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include <kvbench/bounds/check/verdicts.hpp>
#include <kvbench/bounds/clusterkv/checks.hpp>
#include <kvbench/bounds/cost/work.hpp>
#include <kvbench/bounds/trials/paired_replay.hpp>
#include <kvbench/validate/validate.hpp>

#include <support/small_trace.hpp>
#include <unit/bounds/subjects.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;
using namespace kvbench::validate;
using doctest::Approx;

namespace {

/// n tokens whose values have log-normal norms over several orders of magnitude, and of which every ninth has a long
/// key; one query.
Subject heavy_subject(Index n) {
  std::mt19937 engine(7);
  std::normal_distribution<float> normal;
  constexpr Index d = 8;
  std::vector<float> keys, values, query;
  for (Index i = 0; i < n; ++i) {
    const float key = i % 9 == 8 ? 4.0f : 0.5f, value = std::exp(3 * normal(engine));
    for (Index c = 0; c < d; ++c) keys.push_back(key * normal(engine));
    for (Index c = 0; c < d; ++c) values.push_back(value * normal(engine));
  }
  for (Index c = 0; c < d; ++c) query.push_back(normal(engine));
  return make_subject({.name = fmt::format("heavy {}", n),
                       .keys = keys,
                       .values = values,
                       .queries = query,
                       .d = d,
                       .dv = d,
                       .scale = 0.35f},
                      cpu());
}

/// Runs the checks of a paper whose rows can be faults, with `repeats` seed offsets, each a run of its own. No run
/// reports a fault, and the p-values of no row are small too often.
void expect_no_alarms(const Subject& subject, Index seeds, std::uint32_t repeats) {
  std::map<std::string, std::vector<double>> p_values;  // by claim and part
  for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
    const ValidateOptions options{.seeds = seeds, .seed_offset = 1000 * (repeat + 1)};
    std::vector<CheckRow> rows;
    for (const Check* claim : find_checks(all_checks(), {"subgen", "balancekv"}, {})) {
      if (claim->scope != Scope::head || claim->id == "balancekv.exponent") continue;  // whose rows are no faults
      CheckContext context{.subject = &subject, .options = options, .backend = cpu(), .rows = rows, .check = claim->id};
      try {
        claim->run(context);
      } catch (const Unavailable&) {
      } catch (const Infeasible&) {
      }
    }
    judge(rows, options.alpha);
    for (const CheckRow& row : rows) {
      INFO(row.check << " " << row.part << " " << row.params << " offset " << options.seed_offset << " p "
                     << row.p_value);
      CHECK_FALSE(is_fault(row));
      if (!std::isnan(row.p_value) && row.allowed != 0)
        p_values[row.check + row.part + row.params].push_back(row.p_value);
    }
  }
  for (const auto& values : p_values) {
    const std::string& part = values.first;
    for (const double level : {0.05, 0.01}) {
      double alarms = 0;
      for (const double p : values.second) alarms += p < level ? 1 : 0;
      const double expected = level * repeats;
      INFO(part << ", level " << level << ": " << alarms << " of " << repeats);
      CHECK(alarms <= expected + 5 * std::sqrt(expected));
    }
  }
}

}  // namespace

TEST_CASE("false alarms with ten seeds, one query and heavy tails") {
  expect_no_alarms(heavy_subject(1), 10, 2);
  expect_no_alarms(heavy_subject(12), 10, 60);
  expect_no_alarms(heavy_subject(150), 10, 30);
}

TEST_CASE("false alarms with a hundred seeds") { expect_no_alarms(subgen_subject(), 100, 12); }

// Claims that replay a trace, and costs.

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
  const CheckContext context{
      .reader = &trace.reader(), .options = options, .backend = cpu(), .rows = rows, .check = "x"};
  const PairedReplay replay(
      context, {.methods = {method_choice("sink")}, .budgets = {Budget::tokens(10)}, .protocol = Protocol::prefill});
  const std::vector<double> units = replay.units({0, 0});
  REQUIRE(units.size() == 4);  // 2 layers of 2 heads, 12 queries a head
  CHECK(replay.unit_heads() == std::vector<std::size_t>{0, 1, 2, 3});
  double sum = 0, count = 0;
  for (const MetricRow& row : replay.results().heads[1].results[0].metrics)
    sum += double{row[replay::Metric::rel_err]}, ++count;
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
  CheckContext context{.options = options, .backend = cpu(), .rows = rows, .check = "x.cost"};
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
  const CostCase exact{"exact", {}, [](Index n) { return n; }};
  const Work work = work_of(exact, 256, cpu());
  CHECK(work.compress_flops == 0);
  CHECK(work.bytes == 256 * 32 * 2);
  CHECK(work.query_flops > 256 * 32 * 2);
  const Work twice = work_of(exact, 512, cpu());
  CHECK(twice.query_flops == Approx(2 * work.query_flops).epsilon(0.05));
  const CostCase merged{"chelsea", {}, [](Index n) { return n / 2; }};
  CHECK(work_of(merged, 256, cpu()).compress_flops >= 2 * 88 * 88 * 16);
}
