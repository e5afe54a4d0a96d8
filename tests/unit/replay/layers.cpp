// SPDX-License-Identifier: Apache-2.0
// Methods that see a layer, methods with a plan over layers, and dense layers.
#include <algorithm>

#include <doctest/doctest.h>

#include <kvbench/methods/registry.hpp>
#include <support/fakes.hpp>
#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

float largest_error(const HeadResult& head, std::size_t c) {
  float largest = 0;
  for (const MetricRow& row : head.results.at(c).metrics) largest = std::max(largest, row[0]);
  return largest;
}

}  // namespace

TEST_CASE("a layer method gets all heads at once, other methods one head each") {
  const SmallTrace trace;
  std::vector<std::vector<std::int32_t>> layers;
  MethodInfo layer = fake_shared_layer();
  layer.prepare = [&layers, inner = layer.prepare](std::span<const HeadPrompt> heads, const Params& params,
                                                   Backend& backend) {
    layers.emplace_back();
    for (const HeadPrompt& head : heads) layers.back().push_back(head.head.value);
    return inner(heads, params, backend);
  };
  const MethodInfo head = fake_two_sets();
  const ReplayResults results = replay::replay(trace.reader(), request_of({&head, &layer}, 5), serial);
  CHECK(layers == std::vector<std::vector<std::int32_t>>{{0, 1}, {0, 1}});
  REQUIRE(results.heads.size() == 4);
  for (std::size_t l = 0; l < 2; ++l) {
    const ConfigurationResult &a = results.heads[2 * l].results[1], &b = results.heads[2 * l + 1].results[1];
    REQUIRE(a.status == Status::ok);
    // Heads share the budget: 5 tokens of the context each on average, and the same decoded tokens in addition.
    CHECK(a.kept_tokens + b.kept_tokens == doctest::Approx(2 * (5 + 6.5)));
  }
}

TEST_CASE("a planned method gets the budget of its layer") {
  const SmallTrace trace;
  const MethodInfo info = fake_planned();  // 2 * 6 * (l + 1) / 3
  const ReplayResults results = replay::replay(trace.reader(), request_of({&info}, 6), serial);
  REQUIRE(trace.reader().info().num_layers == 2);
  for (const HeadResult& head : results.heads) {
    const Index budget = head.place.layer == 0 ? 4 : 8;
    REQUIRE(head.results[0].status == Status::ok);
    CHECK(head.results[0].budget_tokens == budget);
    CHECK(head.results[0].kept_tokens == doctest::Approx(static_cast<double>(budget) + 6.5));
  }
}

// Plan of layers 0 and 1: 24 2 / 3 = 16 and 24 4 / 3 = 32, of a context of 28.
TEST_CASE("a plan that gives a layer more than the context is limited to the context") {
  const SmallTrace trace;
  const MethodInfo info = fake_planned();
  const ReplayResults results = replay::replay(trace.reader(), request_of({&info}, 24), serial);
  for (const HeadResult& head : results.heads) {
    const ConfigurationResult& result = head.results[0];
    REQUIRE_MESSAGE(result.status == Status::ok, result.reason);
    CHECK(result.budget_tokens == (head.place.layer == 0 ? 16 : 28));
    CHECK(result.kept_tokens == doctest::Approx((head.place.layer == 0 ? 16 : 28) + 6.5));
  }
}

TEST_CASE("dense layers are exact for every kind of method") {
  const SmallTrace trace;
  const MethodInfo head = fake_two_sets(), layer = fake_shared_layer(), observer = fake_observer();
  ReplayRequest request = request_of({&head, &layer, &observer}, 5);
  request.dense_layers = 1;
  const ReplayResults results = replay::replay(trace.reader(), request, serial);
  for (const HeadResult& answered : results.heads) {
    for (std::size_t c = 0; c < 3; ++c) {
      CAPTURE(c);
      REQUIRE_MESSAGE(answered.results[c].status == Status::ok, answered.results[c].reason);
      CHECK(answered.results[c].dense == (answered.place.layer == 0));
      if (answered.place.layer == 0) {
        CHECK(largest_error(answered, c) < 1e-5);
      } else {
        CHECK(largest_error(answered, c) > 1e-3);
      }
    }
  }
}

TEST_CASE("layers kept whole count in a budget of bytes") {
  const SmallTrace trace;
  ReplayRequest request = request_of({&methods::find_method("sink")}, 5);
  request.budgets = {Budget::parse("40%mem")};
  request.dense_layers = 1;  // of 2, which hold half of the memory
  const auto results = [&] { return replay::replay(trace.reader(), request, serial); };
  for (const HeadResult& head : results().heads) {
    CHECK(head.results[0].status == Status::infeasible);
    CHECK(head.results[0].reason ==
          "1 of 2 layers are kept whole, which costs 50 % of the full cache; the budget is 40 %");
  }
  request.budgets = {Budget::parse("75%mem")};
  double held = 0, full = 0;
  for (const HeadResult& head : results().heads) {
    REQUIRE_MESSAGE(head.results[0].status == Status::ok, head.results[0].reason);
    held += head.results[0].bytes.of(CostKind::memory), full += head.results[0].bytes.full;
  }
  CHECK(held / full <= 0.75);
  CHECK(held / full > 0.65);
}
