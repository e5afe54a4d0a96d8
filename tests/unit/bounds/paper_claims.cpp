// SPDX-License-Identifier: Apache-2.0
// Quantities of claims by hand: partitions of real similarities, weights of near keys, dispersion of centres, buckets
// of norms.
#include <kvbench/bounds/balancekv/checks.hpp>
#include <kvbench/bounds/chelsea/checks.hpp>
#include <kvbench/bounds/clusterkv/checks.hpp>
#include <kvbench/bounds/subgen/checks.hpp>

#include <cmath>

#include <doctest/doctest.h>

#include <unit/bounds/judged.hpp>
using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::methods;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

/// Values (length, 0), keys of zeros.
Subject with_norms(const std::vector<float>& lengths) {
  std::vector<float> keys(2 * lengths.size(), 0.0F), values;
  for (const float x : lengths) values.push_back(x), values.push_back(0);
  return make_subject(
      {.name = "test", .keys = keys, .values = values, .queries = {1, 0}, .d = 2, .dv = 2, .scale = 0.5F}, cpu());
}

MethodUnderTest streamed() {
  return registered_method("balancekv", {{"mode", "stream"}, {"t", "16"}, {"rounds", "0"}, {"eps", "0.1"}});
}

/// The fault of sorting by |v|^2.
MethodUnderTest with_squared_norms() {
  return [](const HeadPrompt& head, Backend& backend) {
    std::vector<float> values = backend.read(head.values);
    for (float& x : values) x *= std::abs(x);
    HeadPrompt squared = head;
    squared.values = backend.adopt(std::move(values), head.tokens(), 2);
    return streamed()(squared, backend);
  };
}

}  // namespace

// Two pairs of equal keys: alternating sides split both pairs, halves split none, a random split one pair of three: 2
// of 6.
TEST_CASE("what partitions keep of the similarities of keys") {
  const std::vector<float> keys = {1, 0, 2, 0, 0, 1, 0, 3};
  const Cosines cosines = cosines_of(keys, 2);
  CHECK(kept_by(cosines, std::vector<int>{1, -1, 1, -1}).pairs == 0.5);
  CHECK(kept_by(cosines, std::vector<int>{1, -1, 1, -1}).edges == 1);
  CHECK(kept_by(cosines, std::vector<int>{1, 1, -1, -1}).pairs == 0);
  CHECK(kept_by(cosines, std::vector<int>{1, 1, -1, -1}).edges == 0);
  CHECK(kept_by_random(cosines, 1).pairs == Approx(1.0 / 3));
  CHECK(kept_by_random(cosines, 300).edges == Approx(2.0 / 3).epsilon(0.15));
}

TEST_CASE("nearest keys, and distances of weights") {
  CHECK(nearest_rows(std::vector<float>{1, 0, 2, 0.1F, 0, 1, 0.2F, 3}, 2) == std::vector<std::size_t>{1, 0, 3, 2});
  const std::vector<double> logits = {0, std::log(3.0)};
  const std::vector<std::size_t> other = {1, 0}, itself = {0, 1};
  CHECK(weight_distances(logits, other).logits == Approx(std::log(3.0)));
  CHECK(weight_distances(logits, other).weights == Approx(1));  // 1/4 and 3/4, twice
  CHECK(weight_distances(logits, itself).weights == 0);
}

// The points 0, 0, 10, 10 with the centres 0 and 10: equal sizes; mean square distance of two points 2 * 100 / 3.
TEST_CASE("dispersion of centres") {
  const CentreDispersion even = centre_dispersion(std::vector<float>{0, 0, 10, 10}, 1, 2);
  CHECK(even.evenness == Approx(1));
  CHECK(even.distance == Approx(std::sqrt(1.5)));
  CHECK(centre_dispersion(std::vector<float>{0, 0, 0, 0, 0, 0, 0, 10}, 1, 2).evenness < 0.75);
}

TEST_CASE("a head is compared with the others in every block of a text") {
  std::vector<HeadLinks> heads(3);
  heads[0].unlinked_by_block = {0.1, 0.2};
  heads[1].unlinked_by_block = {0.5, 0.4};
  heads[2].unlinked_by_block = {0.3, 0.0};
  const std::vector<double> excess = excess_by_block(heads, 1);
  REQUIRE(excess.size() == 2);
  CHECK(excess[0] == Approx(0.3));
  CHECK(excess[1] == Approx(0.3));
}

// Norms 1.5, 3 and 0.75 lie in the buckets 1, 2 and 0. 0.03 lies in bucket -5, below the cut of 0.1 / 8 * 3 = 0.0375.
TEST_CASE("buckets of value norms by hand") {
  CHECK(buckets_needed(with_norms({1.5F, 3, 0.75F}), 3, 0.1) == 3);
  CHECK(buckets_needed(with_norms({1.5F, 3, 0.75F, 0.03F}), 4, 0.1) == 3);
  CHECK(buckets_needed(with_norms({1.5F, 3, 0.75F, 0}), 4, 0.1) == 3);
  CHECK(buckets_needed(with_norms({1.5F, 2}), 2, 0.1) == -1);
  CHECK(buckets_held(with_norms({1.5F, 3, 0.75F, 0.03F}), 4, streamed(), cpu()) == 3);
}

TEST_CASE("the method passes the check of buckets, and buckets of squared norms are a fault") {
  const Subject subject = with_norms({1.3F, 1.6F, 1.1F, 1.9F});
  for (const bool faulty : {false, true}) {
    const auto rows = judged_rows(
        &subject, [&](CheckContext& context) { check_buckets(context, faulty ? with_squared_norms() : streamed()); });
    REQUIRE(rows.size() == 2);
    CHECK(is_fault(rows[0]) == faulty);
    CHECK_FALSE(is_fault(rows[1]));
  }
}
