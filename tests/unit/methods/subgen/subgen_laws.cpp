// SPDX-License-Identifier: Apache-2.0
// The random part of subgen against Lemmas 1 and 2 and their consequences. Which tokens its draws select is compared
// with an independent recomputation in tests/unit/faithful.
#include <doctest/doctest.h>

#include <numeric>

#include <kvbench/methods/sampling/leader_partition.hpp>

#include <support/chi_square.hpp>
#include "fixtures.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::test;

namespace {

constexpr std::uint32_t trials = 6000;

/// 24 tokens in a few clusters of different sizes.
struct Case {
  Tokens tokens = random_tokens_of(24, 3, 4, 21, 3, 0.4f);
  Stream stream{tokens, 24};
  MakeCache prepared = stream.prepare("subgen", {{"delta", "2"}, {"t", "2"}, {"s", "3"}});
  LeaderPartition partition = *leader_partition(ref(), stream.keys, 2, 24);

  double mu() const {
    double sum = 0;
    for (Index i = 0; i < tokens.size(); ++i) sum += tokens.norm2(i);
    return sum;
  }
  double size_of(std::int32_t cluster) const {
    return static_cast<double>(std::ranges::count(partition.labels, cluster));
  }
  std::map<TokenId, Weights> entries(std::uint32_t seed) const { return entries_of(stream, *prepared(1, seed), 24); }
};

/// Number of slots that hold each token: its weight over mu / (s |v|^2).
std::vector<double> slot_law(const Case& c) {
  std::vector<double> law;
  for (Index i = 0; i < c.tokens.size(); ++i) law.push_back(c.tokens.norm2(i) / c.mu());
  return law;
}

/// exp of the logits of all tokens for one query.
std::vector<double> exponentials(const Tokens& tokens) {
  std::vector<double> a;
  for (Index i = 0; i < tokens.size(); ++i) a.push_back(std::exp(0.3 * tokens.key(i)[0] - 0.2 * tokens.key(i)[1]));
  return a;
}

}  // namespace

TEST_CASE("slots follow Lemma 1") {
  const Case c;
  const std::vector<double> law = slot_law(c);
  std::vector<double> counts(24);
  for (std::uint32_t seed = 0; seed < trials; ++seed) {
    for (const auto& [id, weight] : c.entries(seed)) {
      const double one_slot = c.mu() / (3 * c.tokens.norm2(id));
      const double slots = weight.num / one_slot;
      CHECK(slots == doctest::Approx(std::round(slots)).epsilon(1e-5));
      counts[static_cast<std::size_t>(id)] += std::round(slots);
    }
  }
  CHECK(std::accumulate(counts.begin(), counts.end(), 0.0) == 3 * trials);
  CHECK(follows(counts, law));
}

TEST_CASE("samples of each cluster follow Lemma 2 (5)") {
  const Case c;
  REQUIRE(c.partition.clusters() >= 3);
  std::vector<double> counts(24);
  for (std::uint32_t seed = 0; seed < trials; ++seed) {
    for (const auto& [id, weight] : c.entries(seed)) {
      const auto i = static_cast<std::size_t>(id);
      counts[i] += weight.den / (c.size_of(c.partition.labels[i]) / 2);
    }
  }
  for (std::int32_t cluster = 0; cluster < static_cast<std::int32_t>(c.partition.clusters()); ++cluster) {
    const double n = c.size_of(cluster);
    std::vector<double> of_cluster, law;
    for (std::size_t i = 0; i < 24; ++i) {
      if (c.partition.labels[i] != cluster) continue;
      of_cluster.push_back(counts[i]);
      law.push_back(1 / n);
    }
    CHECK(std::accumulate(of_cluster.begin(), of_cluster.end(), 0.0) == doctest::Approx(2.0 * trials));
    if (n > 1) CHECK(follows(of_cluster, law));
  }
}

TEST_CASE("the samples of two clusters, and of a cluster and a value slot, are independent") {
  const Stream stream({.d = 1, .dv = 1, .keys = {0, 9, 0, 9, 0, 9}, .values = {1, 1, 1, 1, 1, 1}}, 6);
  const auto prepared = stream.prepare("subgen", {{"delta", "1"}, {"t", "1"}, {"s", "1"}});
  std::vector<double> counts(54), law(54, 1.0 / 54);
  for (std::uint32_t seed = 0; seed < trials; ++seed) {
    std::size_t even = 0, odd = 0, slot = 0;
    for (const auto& [id, weight] : entries_of(stream, *prepared(1, seed), 6)) {
      const auto i = static_cast<std::size_t>(id);
      if (weight.den > 0) (id % 2 == 0 ? even : odd) = i / 2;
      if (weight.num > 0) slot = i;
    }
    counts[18 * even + 6 * odd + slot] += 1;
  }
  CHECK(follows(counts, law));
}

TEST_CASE("tau is unbiased") {
  const Case c;
  const std::vector<double> a = exponentials(c.tokens);
  const double exact = std::accumulate(a.begin(), a.end(), 0.0);
  double sum = 0, squares = 0;
  for (std::uint32_t seed = 0; seed < trials; ++seed) {
    double tau = 0;
    for (const auto& [id, weight] : c.entries(seed)) tau += weight.den * a[static_cast<std::size_t>(id)];
    sum += tau;
    squares += tau * tau;
  }
  const double mean = sum / trials, error = std::sqrt((squares / trials - mean * mean) / trials);
  CHECK(error > 1e-4 * exact);
  CHECK(std::abs(mean - exact) < 4 * error);
}

TEST_CASE("z is unbiased, and its squared error is (|a|^2 |V|_F^2 - |V^T a|^2) / s") {
  const Case c;
  const std::vector<double> a = exponentials(c.tokens);
  std::vector<double> exact(4);
  double a2 = 0;
  for (Index i = 0; i < 24; ++i) {
    a2 += a[static_cast<std::size_t>(i)] * a[static_cast<std::size_t>(i)];
    for (Index k = 0; k < 4; ++k)
      exact[static_cast<std::size_t>(k)] += a[static_cast<std::size_t>(i)] * c.tokens.value(i)[k];
  }
  // E|z - V^T a|^2 = (sum_i mu a_i^2 - |V^T a|^2) / s, and mu = |V|_F^2.
  double exact2 = 0;
  for (const double x : exact) exact2 += x * x;
  const double identity = (a2 * c.mu() - exact2) / 3;

  std::vector<double> mean(4);
  double error2 = 0;
  for (std::uint32_t seed = 0; seed < trials; ++seed) {
    std::vector<double> z(4);
    for (const auto& [id, weight] : c.entries(seed))
      for (Index k = 0; k < 4; ++k)
        z[static_cast<std::size_t>(k)] += weight.num * a[static_cast<std::size_t>(id)] * c.tokens.value(id)[k];
    for (std::size_t k = 0; k < 4; ++k) {
      error2 += (z[k] - exact[k]) * (z[k] - exact[k]) / trials;
      mean[k] += z[k] / trials;
    }
  }
  CHECK(error2 == doctest::Approx(identity).epsilon(0.04));
  double bias2 = 0;
  for (std::size_t k = 0; k < 4; ++k) bias2 += (mean[k] - exact[k]) * (mean[k] - exact[k]);
  CHECK(bias2 < 16 * identity / trials);
}
