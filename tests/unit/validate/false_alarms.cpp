// SPDX-License-Identifier: Apache-2.0
// Rate of false alarms: checks run repeatedly on the correct methods with different seeds, at the smallest sizes that
// are allowed and on data with heavy tails.
#include <cmath>
#include <map>

#include <doctest/doctest.h>

#include <kvbench/bounds/check/verdicts.hpp>
#include <kvbench/validate/all_checks.hpp>
#include <unit/bounds/subjects.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::methods;
using namespace kvbench::validate;
using namespace kvbench::testing;

namespace {

/// n tokens whose values have log-normal norms over several orders of magnitude, and of which every ninth has a long
/// key; one query.
Subject heavy_subject(Backend& backend, Index n) {
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
                      backend);
}

/// Runs the checks of a paper whose rows can be faults, with `repeats` seed offsets, each a run of its own. No run
/// reports a fault, and the p-values of no row are small too often.
void expect_no_alarms(const Subject& subject, Index seeds, std::uint32_t repeats) {
  const auto backend = make_cpu_backend();
  std::map<std::string, std::vector<double>> p_values;  // by claim and part
  for (std::uint32_t repeat = 0; repeat < repeats; ++repeat) {
    const ValidateOptions options{.seeds = seeds, .seed_offset = 1000 * (repeat + 1)};
    std::vector<CheckRow> rows;
    for (const Check* claim : find_checks(all_checks(), {"subgen", "balancekv"}, {})) {
      if (claim->scope != Scope::head || claim->id == "balancekv.exponent") continue;  // whose rows are no faults
      CheckContext context{
          .subject = &subject, .options = options, .backend = *backend, .rows = rows, .check = claim->id};
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
  const auto backend = make_cpu_backend();
  expect_no_alarms(heavy_subject(*backend, 1), 10, 2);
  expect_no_alarms(heavy_subject(*backend, 12), 10, 60);
  expect_no_alarms(heavy_subject(*backend, 150), 10, 30);
}

TEST_CASE("false alarms with a hundred seeds") {
  const auto backend = make_cpu_backend();
  expect_no_alarms(subgen_subject(*backend), 100, 12);
}
