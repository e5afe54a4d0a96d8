// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/paired_test.hpp>
#include <kvbench/kernels/philox.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <doctest/doctest.h>

using namespace kvbench;
using doctest::Approx;

namespace {

/// Standard normal numbers (Box and Muller), the same in every run.
class Normal {
 public:
  explicit Normal(std::uint32_t key) : key_(key) {}
  double operator()() {
    const PhiloxBlock words = philox4x32({{next_++, 0, 0, 0}}, {key_, 17});
    return std::sqrt(-2 * std::log(uniform52(words.x[0], words.x[1]))) *
           std::cos(2 * std::numbers::pi * uniform52(words.x[2], words.x[3]));
  }

 private:
  std::uint32_t key_, next_ = 0;
};

/// Standard deviations of the parts of a difference: a part common to all seeds that is correlated between neighbouring
/// queries, a part common to all queries of a seed, and an independent part.
struct Model {
  std::size_t blocks = 40, seeds = 1;
  double query = 1, seed = 0, own = 0, shift = 0;
  double power = 1;       ///< exponent of the part common to all seeds: heavy tails
  std::size_t heads = 0;  ///< heads with independent draws; 0: the part of a seed is common to all
};

/// Blocks of 16 queries whose neighbours are correlated by 0.7.
PairedSums sample(const Model& m, Normal& normal) {
  const std::size_t heads = std::max<std::size_t>(1, m.heads);
  PairedSums pairs{.seeds = m.seeds, .drawn = m.seeds > 1};
  std::vector<double> seeds;
  for (std::size_t j = 0; j < m.seeds * heads; ++j) seeds.push_back(m.seed * normal());
  if (m.heads > 0) pairs.unit_sums.resize(m.seeds * heads), pairs.unit_counts = pairs.unit_sums;
  double shared = normal();
  for (std::size_t i = 0; i < m.blocks; ++i) {
    std::vector<double> sums(m.seeds);
    for (int query = 0; query < 16; ++query) {
      shared = 0.7 * shared + std::sqrt(1 - 0.49) * normal();
      const double part = m.query * std::copysign(std::pow(std::abs(shared), m.power), shared);
      for (std::size_t j = 0; j < m.seeds * heads; ++j) {
        const double value = part + seeds[j] + m.own * normal() + m.shift;
        sums[j % m.seeds] += value;
        if (m.heads > 0) pairs.unit_sums[j] += value, pairs.unit_counts[j] += 1;
      }
    }
    for (const double sum : sums) {
      const auto count = static_cast<double>(16 * heads);
      pairs.a.push_back(sum + count);
      pairs.b.push_back(count);
      pairs.counts.push_back(count);
    }
  }
  return pairs;
}

/// Share of 1000 samples with a p-value below 5 %.
double found(const Model& m) {
  Normal normal(1);
  int below = 0;
  for (int i = 0; i < 1000; ++i) below += paired_test(sample(m, normal), 499, 1).p_value < 0.05;
  return below / 1000.0;
}

}  // namespace

TEST_CASE("sign flips by hand") {
  const double up[] = {1, 2, 3};  // of 8 choices, only +++ and --- reach 6
  CHECK(sign_flip_p(up) == 2.0 / 8);
  const double mixed[] = {1, 2, -1};  // |+-1 +-2 +-1| is 4, 2, 2, 0 and the same again: 6 of 8 reach 2
  CHECK(sign_flip_p(mixed) == 6.0 / 8);
  const double with_zero[] = {0, 1, 2, 3, 0};
  CHECK(sign_flip_p(with_zero) == 2.0 / 8);
  const double zero[] = {0, 0};
  CHECK(sign_flip_p(zero) == 1);
  const double balanced[] = {0.1, -0.1};
  CHECK(sign_flip_p(balanced) == 1);
}

TEST_CASE("sums that differ only by rounding count as equal") {
  const double tenths[] = {0.1, 0.2, 0.3, -0.6,
                           0.1};  // |sum| = 0.1; sums of +-1 +-2 +-3 +-6 +-1 are odd: all 32 reach 1
  CHECK(sign_flip_p(tenths) == 1);
}

TEST_CASE("for more than 16 values choices are drawn, and agree with the count of all choices") {
  const std::vector<double> ones(20, 1.0);  // 2 of 2^20 choices: none of 9999 draws
  CHECK(sign_flip_p(ones) == 1e-4);
  std::vector<double> values;
  Normal normal(5);
  for (int i = 0; i < 16; ++i) values.push_back(normal() + 0.3);
  const double exact = sign_flip_p(values);
  CHECK(exact > 0.01);
  CHECK(exact < 0.9);
  values.push_back(1e-9);
  CHECK(sign_flip_p(values) == Approx(exact).epsilon(0.1));
  CHECK(sign_flip_p(values) != exact);
  CHECK(sign_flip_p(values) == sign_flip_p(values));
}

TEST_CASE("the variance of a mean over rows and columns") {
  const auto p_value = [](const std::vector<double>& sums) {  // [2 blocks][2 seeds], one pair in each
    return two_way_t_p({.seeds = 2, .drawn = true, .a = sums, .b = {0, 0, 0, 0}, .counts = {1, 1, 1, 1}});
  };
  // Mean 2, sums of residuals by row 2 and -2, by column 0: V_rows = (4 + 4) / 16 * 2 = 1, V_cols = 0, so V = 1 with
  // one degree of freedom and t = 2: Student's t is then the Cauchy distribution, p = 1 - 2 atan(2) / pi.
  CHECK(p_value({3, 3, 1, 1}) == Approx(1 - 2 * std::atan(2.0) / std::numbers::pi));
  CHECK(p_value({3, 1, 3, 1}) == Approx(1 - 2 * std::atan(2.0) / std::numbers::pi));
  // Alternating residuals 1 and -1: by row and column 0, V_cells = 4 / 16 * 4 / 3, so V = max(0, 0, -1/3) = 0.
  CHECK(p_value({3, 1, 1, 3}) == 0);
  CHECK(p_value({1, -1, -1, 1}) == 1);
}

TEST_CASE("seeds vary within units with independent draws") {
  // The grid has no variance (all 2 by block, one pair each; V_blocks = V_cells = 0). Two units of two pairs: seeds
  // differ by 2 in the first, residuals 1 and -1, and by 0 in the second. V = 2 / 16 * 2 = 1/4 with one degree of
  // freedom: t = 2 / (1/2) = 4.
  PairedSums pairs{.seeds = 2,
                   .drawn = true,
                   .a = {2, 2, 2, 2},
                   .b = {0, 0, 0, 0},
                   .counts = {1, 1, 1, 1},
                   .unit_sums = {3, 1, 2, 2},
                   .unit_counts = {1, 1, 1, 1}};
  CHECK(two_way_t_p(pairs) == Approx(1 - 2 * std::atan(4.0) / std::numbers::pi));
  // The same in both: V = 1/2 with (1/2)^2 / (2 (1/4)^2) = 2 degrees: t = sqrt(8), and p = 1 - t / sqrt(2 + t^2).
  pairs.unit_sums = {3, 1, 1, 3};
  CHECK(two_way_t_p(pairs) == Approx(1 - std::sqrt(8.0 / 10)));
}

TEST_CASE("a paired test by hand") {
  // Three blocks of 2, 2 and 1 pairs; a - b sums to 2, 4 and 3.
  const PairedTest t = paired_test({.seeds = 1, .drawn = false, .a = {4, 6, 4}, .b = {2, 2, 1}, .counts = {2, 2, 1}});
  CHECK(t.mean_a == Approx(14.0 / 5));
  CHECK(t.mean_b == Approx(5.0 / 5));
  CHECK(t.difference == Approx(9.0 / 5));
  CHECK(t.p_value == 2.0 / 8);
  CHECK(t.p_least == 2.0 / 8);
  CHECK(t.blocks == 3);
  CHECK(t.interval.lo == Approx(1));  // all draws are the first block, or the third
  CHECK(t.interval.hi == Approx(3));
  CHECK(!t.one_seed);
}

TEST_CASE("blocks without a pair do not count") {
  const PairedTest t = paired_test({.seeds = 1, .drawn = false, .a = {0, 2, 4}, .b = {0, 1, 1}, .counts = {0, 1, 1}});
  CHECK(t.blocks == 2);
  CHECK(t.p_least == 2.0 / 4);
  CHECK(t.difference == Approx(2));
}

TEST_CASE("variance between seeds outweighs agreement of blocks") {
  // 20 equal blocks: seed 0 is better by 1, seed 1 worse by 0.2.
  PairedSums pairs{.seeds = 2, .drawn = true};
  for (int i = 0; i < 20; ++i) {
    pairs.a.insert(pairs.a.end(), {2, 0.8});
    pairs.b.insert(pairs.b.end(), {1, 1});
    pairs.counts.insert(pairs.counts.end(), {1, 1});
  }
  const PairedTest t = paired_test(pairs);
  CHECK(t.difference == Approx(0.4));
  CHECK(t.p_value > 0.5);  // t = 0.4 / 0.6 with one degree of freedom
  CHECK(t.interval.lo == Approx(-0.2));
  CHECK(t.interval.hi == Approx(1));
}

TEST_CASE("one seed of a randomised side has no p-value") {
  const PairedTest t = paired_test({.seeds = 1, .drawn = true, .a = {2, 2}, .b = {1, 1}, .counts = {1, 1}});
  CHECK(t.one_seed);
  CHECK(std::isnan(t.p_value));
  CHECK(t.difference == Approx(1));
}

TEST_CASE("means with an infinite value are not compared") {
  const double inf = std::numeric_limits<double>::infinity();
  const PairedTest t = paired_test({.seeds = 1, .drawn = false, .a = {inf, 2}, .b = {1, 1}, .counts = {1, 1}});
  CHECK(t.infinite);
  CHECK(t.p_value == 1);
  CHECK(t.difference == inf);
  CHECK(std::isnan(t.interval.lo));
}

// Of 1000 samples, 5 % is 50 with a standard deviation of 7. Correlation across the ends of blocks adds a little.
TEST_CASE("the rate of false alarms is near 5 % for all kinds of differences") {
  CHECK(found({}) == Approx(0.06).epsilon(0.5));
  CHECK(found({.blocks = 8}) == Approx(0.05).epsilon(0.5));
  CHECK(found({.power = 3}) < 0.075);                                       // heavy tails
  CHECK(found({.blocks = 5}) == 0);                                         // 2 / 2^5 is more than 5 %
  CHECK(found({.seeds = 5}) < 0.075);                                       // equal seeds
  CHECK(found({.seeds = 5, .seed = 0.3}) < 0.075);                          // variance of blocks and seeds
  CHECK(found({.seeds = 5, .query = 0.1, .seed = 0.3, .own = 1}) < 0.075);  // the independent part dominates
  CHECK(found({.seeds = 5, .query = 0, .seed = 0, .own = 1}) < 0.075);
  CHECK(found({.seeds = 2, .query = 0.1, .seed = 0.3}) < 0.1);  // two seeds estimate their variance poorly
  CHECK(found({.seeds = 3, .query = 0.1, .seed = 0.3, .heads = 6}) < 0.075);
  CHECK(found({.seeds = 3, .query = 1, .seed = 1, .own = 1, .heads = 6}) < 0.075);
}

TEST_CASE("a real difference is found") {
  CHECK(found({.shift = 0.4}) > 0.95);
  CHECK(found({.blocks = 8, .shift = 1}) > 0.95);
  CHECK(found({.seeds = 5, .own = 1, .shift = 0.5}) > 0.9);
  CHECK(found({.seeds = 3, .query = 0.1, .seed = 0.5, .shift = 0.5, .heads = 6}) > 0.9);
  CHECK(found({.seeds = 3, .query = 0.1, .seed = 0.5 / std::sqrt(6), .shift = 0.5}) <
        0.9);  // the same variance, common to all heads
  CHECK(found({.seeds = 5, .query = 0.3, .seed = 0.1, .own = 0.3, .shift = 0.4}) > 0.9);
}
