// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/subgen.hpp>

#include <doctest/doctest.h>

#include <kvbench/methods/sampling/leader_partition.hpp>

#include "fixtures.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::test;

namespace {

// With delta = 2 the clusters are {0, 1, 3}, {2, 4, 6, 7} and {5}; |v|^2 = 1 4 0 1 1 1 1 1, mu = 10.
const Tokens eight = {.d = 1, .dv = 1, .keys = {0, 1, 5, 0.5, 6, 10, 5.5, 3}, .values = {1, 2, 0, -1, 1, 1, 1, 1}};

std::map<TokenId, Weights> entries_for(const Stream& stream, const std::vector<Assignment>& settings, Index budget,
                                       std::uint32_t seed = 0) {
  const auto cache = stream.prepare("subgen", settings)(budget, seed);
  return entries_of(stream, *cache, stream.head.tokens());
}

double total_den(const std::map<TokenId, Weights>& entries) {
  double sum = 0;
  for (const auto& [id, weight] : entries) sum += weight.den;
  return sum;
}

}  // namespace

TEST_CASE("subgen: weights of eight tokens, worked by hand") {
  const Stream stream(eight, 8);
  const std::vector<TokenId> cluster = {0, 0, 1, 0, 1, 2, 1, 1};
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    // t = 1: one sample of each cluster, with the cluster's size 3, 4 or 1. s = 2: a slot weighs 10 / (2 |v|^2).
    const auto entries = entries_for(stream, {{"delta", "2"}, {"t", "1"}, {"s", "2"}}, 1, seed);

    std::vector<double> size(3);
    double slots = 0;
    for (const auto& [id, weight] : entries) {
      size[static_cast<std::size_t>(cluster[static_cast<std::size_t>(id)])] += weight.den;
      const double one_slot = id == 1 ? 1.25 : 5;
      CHECK((weight.num == 0 || weight.num == one_slot || weight.num == 2 * one_slot));
      slots += weight.num / one_slot;
      if (id == 2) CHECK(weight.num == 0);
    }
    CHECK(slots == 2);
    CHECK(size == std::vector<double>{3, 4, 1});
    CHECK(entries.at(5).den == 1);  // alone in its cluster
  }
}

TEST_CASE("subgen: mu includes the newest token, so that a single token is answered exactly") {
  const Stream stream({.d = 1, .dv = 2, .keys = {7}, .values = {3, 4}}, 0);
  const auto cache = stream.prepare("subgen", {{"delta", "1"}})(6, 0);
  CHECK(cache->entries(stream.queries({0})).empty());

  stream.append(*cache, 0, 1);

  CHECK(entries_of(stream, *cache, 1) == std::map<TokenId, Weights>{{0, {1, 1}}});
}

TEST_CASE("subgen: one token in several slots is one entry") {
  const Stream stream({.d = 1, .dv = 1, .keys = {1, 1, 1}, .values = {0, 5, 0}}, 3);
  const auto entries = entries_for(stream, {{"delta", "1"}, {"t", "3"}, {"s", "4"}}, 1);
  CHECK(entries.at(1).num == 1);  // four slots, each 25 / (4 * 25)
  CHECK(total_den(entries) == 3);
}

TEST_CASE("subgen: zero values are never sampled") {
  const Stream stream({.d = 1, .dv = 2, .keys = {1, 2, 3}, .values = std::vector<float>(6)}, 2);
  const auto cache = stream.prepare("subgen")(8, 0);
  stream.append(*cache, 2, 1);
  const auto entries = entries_of(stream, *cache, 3);
  for (const auto& [id, weight] : entries) CHECK(weight.num == 0);
  CHECK(total_den(entries) == 3);
}

TEST_CASE("subgen: degenerate contexts") {
  const Tokens same = {.d = 1, .dv = 1, .keys = std::vector<float>(50, 2.0f), .values = std::vector<float>(50, 1.0f)};
  for (const Index n : {0, 1, 2, 50}) {
    for (const Index budget : {5, 6, 1000}) {
      const Stream stream(same, n);
      const auto cache = stream.prepare("subgen")(budget, 3);
      if (n > 0) CHECK(total_den(entries_of(stream, *cache, n)) == n);
      CHECK(array_of(*cache, "representatives").rows == (n > 0 ? 1 : 0));
    }
  }
}

TEST_CASE("subgen: blocks, single tokens and the prompt give the same state") {
  const Tokens tokens = random_tokens_of(120, 4, 3, 2);
  const std::vector<Assignment> settings = {{"delta", "1.5"}, {"s", "30"}};
  const auto whole = entries_for(Stream(tokens, 120), settings, 1, 9);
  for (const Index context : {0, 1, 60, 119}) {
    for (const Index block : {1, 7, 120}) {
      const Stream stream(tokens, context);
      const auto cache = stream.prepare("subgen", settings)(1, 9);
      for (Index i = context; i < 120; i += block) stream.append(*cache, i, std::min(block, 120 - i));
      CHECK(entries_of(stream, *cache, 120) == whole);
    }
  }
}

TEST_CASE("subgen: the sets after the context fit the budget and nearly fill it") {
  const Tokens tokens = random_tokens_of(600, 6, 10, 4);
  for (const std::string t : {"1", "4", "9"}) {
    const Stream stream(tokens, 600);
    const auto prepared = stream.prepare("subgen", {{"t", t}});
    for (const Index budget : {16, 33, 60, 150, 300}) {
      const auto cache = prepared(budget, 0);
      const Index clusters = array_of(*cache, "representatives").rows, slots = array_of(*cache, "slot keys").rows;
      const Index samples = array_of(*cache, "cluster samples").rows;

      CHECK(slots == budget / 2);
      CHECK(samples == clusters * std::stoi(t));
      const Index numbers = (clusters + samples) * 6 + slots * 16;
      CHECK(numbers <= budget * 16);
      CHECK(numbers >= budget * 16 - (1 + std::stoi(t)) * 6 * (1 + clusters / 10));
    }
  }
}

TEST_CASE("subgen: a context that fits entirely has an exact denominator") {
  const Tokens tokens = random_tokens_of(40, 3, 3, 8);
  const auto entries = entries_for(Stream(tokens, 40), {}, 200);
  REQUIRE(entries.size() == 40);
  for (const auto& [id, weight] : entries) CHECK(weight.den == 1);
}

TEST_CASE("subgen: the radius of the budget is constant in decode, and the footprint counts added clusters") {
  Tokens tokens = random_tokens_of(220, 4, 4, 6);
  for (std::size_t i = 200 * 4; i < tokens.keys.size(); ++i) tokens.keys[i] += static_cast<float>(100 * (i / 4));
  const Stream stream(tokens, 200);
  const auto cache = stream.prepare("subgen")(60, 0);
  const Index before = array_of(*cache, "representatives").rows;

  stream.append(*cache, 200, 20);

  CHECK(array_of(*cache, "representatives").rows == before + 20);
  CHECK(array_of(*cache, "cluster sizes").rows == before + 20);
  CHECK(total_den(entries_of(stream, *cache, 220)) == doctest::Approx(220));
}

TEST_CASE("subgen: a budget without room for one cluster is infeasible, and the message names the remedy") {
  const Stream stream(random_tokens_of(30, 4, 4, 1), 30);
  CHECK_NOTHROW(stream.prepare("subgen")(5, 0));
  CHECK_THROWS_WITH_AS(stream.prepare("subgen")(4, 0), doctest::Contains("at least 5 tokens"), Infeasible);
  CHECK_THROWS_WITH_AS(stream.prepare("subgen", {{"s", "10"}})(4, 0), doctest::Contains("at least 13 tokens"),
                       Infeasible);
  CHECK_NOTHROW(stream.prepare("subgen", {{"delta", "1"}})(1, 0));
}

TEST_CASE("subgen: delta_r is divided by scale times the largest norm of an observed query") {
  // |q| = 5 and 1, scale 0.5: r = 2.5, so delta_r = 5 is delta = 2.
  Stream stream({.d = 2, .dv = 1, .keys = {0, 0, 2, 0, 5, 0}, .values = {1, 1, 1}}, 3, {3, 4, 0, 1});
  stream.head.scale = 0.5;
  const auto clusters = [&](const std::string& delta_r) {
    return array_of(*stream.prepare("subgen", {{"delta_r", delta_r}})(4, 0), "representatives").rows;
  };
  CHECK(clusters("4.99") == 3);
  CHECK(clusters("5.01") == 2);

  const Stream unobserved(eight, 8);
  CHECK_THROWS_AS(unobserved.prepare("subgen", {{"delta_r", "1"}}), Unavailable);
  CHECK_THROWS_AS(unobserved.prepare("subgen", {{"delta_r", "1"}, {"delta", "1"}}), Error);
}
