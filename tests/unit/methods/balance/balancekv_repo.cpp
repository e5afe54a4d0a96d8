// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <doctest/doctest.h>

#include <kvbench/methods/sampling/softmax_balance.hpp>
#include <kvbench/methods/stages/draws.hpp>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

std::vector<Entry> kept(const std::string& method, const HeadData& head, std::vector<Assignment> settings, Index budget,
                        std::uint32_t seed, Backend& backend = ref()) {
  const auto cache = open_cache(method, std::move(settings), prompt_of(head, backend), budget, seed, backend);
  const QueryBlock block = query_block(head, head.n, head.n + 1, head.n + 1, backend);
  return visible_entries(head, cache->entries(block), block, backend)[0];
}

double forced_signs(const HeadData& head, std::vector<Assignment> settings, Index budget) {
  return open_cache("balancekv-repo", std::move(settings), prompt_of(head, ref()), budget, 0)->notes()[0].count;
}

/// The released loop in fp64 over padded blocks: tokens and weights, in its order.
std::vector<std::pair<TokenId, float>> released_loop(const HeadData& head, Index n, Index rounds, Index block,
                                                     double temp, const Draws& draws) {
  std::vector<std::pair<TokenId, float>> list;
  for (Index i = 0; i < n; ++i) list.emplace_back(static_cast<TokenId>(i), 1.0f);
  const auto key = [&](Index place, Index c) {  // zero in the padding
    return place < std::ssize(list)
               ? double{head.keys[static_cast<std::size_t>(list[static_cast<std::size_t>(place)].first * head.d + c)]}
               : 0;
  };
  const auto value = [&](Index place, Index c) {
    const auto& [id, weight] = list[static_cast<std::size_t>(place)];
    return double{head.values[static_cast<std::size_t>(id * head.dv + c)]} * double{weight};
  };
  for (Index round = 0; round < rounds; ++round) {
    std::vector<std::int32_t> signs;
    for (Index j = 0; j < std::ssize(list); ++j) {
      const Index begin = j / block * block;
      double sum = 0;
      for (Index i = begin; i < j; ++i) {
        double logit = 0, factor = 0.025 + 1e-8;
        for (Index c = 0; c < head.d; ++c) {
          double mean = 0;
          for (Index p = begin; p < begin + block; ++p) mean += key(p, c) / static_cast<double>(block);
          logit += (key(i, c) - mean) * (key(j, c) - mean);
        }
        for (Index c = 0; c < head.dv; ++c) factor += value(i, c) * value(j, c);
        sum += std::exp(temp * double{head.scale} * logit) * factor * signs[static_cast<std::size_t>(i)];
      }
      const double u = draws.uniform(list[static_cast<std::size_t>(j)].first, static_cast<std::uint32_t>(round));
      signs.push_back(j == begin || u < 0.5 - 4 * sum ? 1 : -1);
    }
    const KeptPlaces half = released_half(signs);
    std::vector<std::pair<TokenId, float>> next;
    for (std::size_t i = 0; i < half.places.size(); ++i) {
      auto entry = list[static_cast<std::size_t>(half.places[i])];
      entry.second *= half.factors[i];
      next.push_back(entry);
    }
    list = next;
  }
  return list;
}

}  // namespace

// Equal keys: K = <v, v'> + 0.025 and gamma = 4. Values 1 2 4 8: sums 2.025, -3.975, 24.025 make + - + -; -1 reaches m
// = 2 last, so that + is kept with factor 2. Values 1 -2 2 5: the sum -1.975 makes + +, which are dropped; the two
// tokens after them are kept with factor 1.
TEST_CASE("balancekv-repo: weights 1 or 2 in the numerator, 2^T in the denominator") {
  HeadData head = small_head({0, 0, 0, 0, 0}, 4);
  CHECK(kept("balancekv-repo", head, {}, 2, 0) == std::vector<Entry>{{0, 2, 2, {}, {}}, {2, 2, 2, {}, {}}});
  head.values = {1, -2, 2, 5, 0};
  CHECK(kept("balancekv-repo", head, {}, 2, 0) == std::vector<Entry>{{2, 1, 2, {}, {}}, {3, 1, 2, {}, {}}});
  CHECK(kept("balancekv-repo", head, {{"mass", "consistent"}}, 2, 0) ==
        std::vector<Entry>{{2, 1, 1, {}, {}}, {3, 1, 1, {}, {}}});
  // The window has weight 1: of five tokens 0 .. 3 are halved, and 4 is kept.
  HeadData longer = small_head({0, 0, 0, 0, 0, 0}, 5);
  CHECK(kept("balancekv-repo", longer, {}, 3, 0) ==
        std::vector<Entry>{{0, 2, 2, {}, {}}, {2, 2, 2, {}, {}}, {4, 1, 1, {}, {}}});
}

// Keys 4 and 0. In a block of 4 the padded mean is 1: exp(3 * -1) (4 + 0.025) * 4 = 0.80 > 1/2, a forced sign. With the
// mean of the two it would be exp(2 * -2) ... = 0.29.
TEST_CASE("balancekv-repo: the zeros of the padding enter the mean") {
  HeadData head = small_head({4, 0, 0}, 2);
  head.values = {2, 2, 0};
  CHECK(forced_signs(head, {{"block", "4"}}, 1) == 1);
  CHECK(forced_signs(head, {{"block", "2"}}, 1) == 0);
}

TEST_CASE("balancekv-repo: a round over one token keeps nothing") {
  const HeadData head = small_head({0, 0}, 1);
  CHECK(kept("balancekv-repo", head, {{"rounds", "1"}}, 1, 0).size() == 1);  // it is the window
  const HeadData two = small_head({0, 0, 0}, 2);
  CHECK(kept("balancekv-repo", two, {{"rounds", "2"}}, 1, 0) == std::vector<Entry>{{1, 1, 1, {}, {}}});
}

TEST_CASE("balancekv-repo equals the released loop in order and weights, over rounds and blocks") {
  for (const auto& backend : {make_ref_backend(), make_cpu_backend()}) {
    HeadData head = random_head({.n = 150, .decoded = 1, .d = 4, .dv = 2, .group = 1}, 9, *backend);
    for (float& x : head.values) x *= 0.2f;
    const HeadPrompt prompt = prompt_of(head, *backend);
    int mixed = 0;
    for (const Index rounds : {1, 2, 3, 4}) {
      for (std::uint32_t seed = 0; seed < 4; ++seed) {
        const auto entries =
            kept("balancekv-repo", head, {{"block", "16"}, {"temp", "0.5"}}, 150 >> rounds, seed, *backend);
        const auto literal = released_loop(head, 150, rounds, 16, 0.5, Draws(seed, "balancekv-repo", prompt));
        std::vector<Entry> expected;
        for (const auto& [id, weight] : literal) {
          expected.push_back({id, weight, std::ldexp(1.0f, static_cast<int>(rounds)), {}, {}});
          mixed += weight != expected.back().den;
        }
        std::ranges::sort(expected);
        CHECK(entries == expected);
        CHECK(std::ssize(entries) == 150 >> rounds);
        double sum = 0;
        for (const Entry& entry : entries) sum += double{entry.num};
        CHECK(sum <= 150);
      }
    }
    CHECK(mixed > 10);  // weights below 2^T do occur
  }
}

TEST_CASE("balancekv-repo: decoded tokens are exact, and the footprint has two weights per token") {
  const HeadData head = random_head({.n = 48, .decoded = 5, .d = 4, .dv = 3, .group = 1}, 1, ref());
  const auto cache = open_cache("balancekv-repo", {}, prompt_of(head, ref()), 15, 0);
  CHECK(append(*cache, token_block(head, 48, 53, ref())) == 5);
  CHECK(cache->protected_tokens().recent == 4);
  const Footprint arrays = cache->footprint();
  CHECK(arrays[0].rows == 20);
  CHECK(arrays[1].cols == 3);
  CHECK(arrays[2].rows == 15);
  CHECK(arrays[2].cols == 2);
}

TEST_CASE("uniform-repo keeps the -1 class first, gives +1 to the first of a block, and weights 2^T") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0, 0, 0}, 7);
  bool short_class = false, long_class = false;
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    const Draws draws(seed, "uniform-repo", prompt_of(head, ref()));
    Ids minus, plus;
    for (TokenId i = 0; i < 7; ++i) (i % 4 != 0 && draws.uniform(i, 0) >= 0.5 ? minus : plus).push_back(i);
    short_class |= minus.size() < 3;
    long_class |= minus.size() > 3;
    Ids expected = minus;
    expected.insert(expected.end(), plus.begin(), plus.end());
    expected.resize(3);
    std::ranges::sort(expected);

    const auto entries = kept("uniform-repo", head, {{"block", "4"}}, 3, seed);
    CHECK(ids_of(entries) == expected);
    for (const Entry& entry : entries) CHECK((entry.num == 2 && entry.den == 2));
  }
  CHECK(short_class);
  CHECK(long_class);
}

TEST_CASE("uniform-repo keeps floor(n / 2^T) and a window of the rest") {
  const HeadData head = random_head({.n = 103, .decoded = 1, .group = 1}, 0, ref());
  CHECK(kept("uniform-repo", head, {}, 103, 0)[0].num == 1);
  const auto entries = kept("uniform-repo", head, {}, 30, 1);  // 6 + 97 / 4
  CHECK(entries.size() == 30);
  double sum = 0;
  for (const Entry& entry : entries) {
    CHECK(entry.num == (entry.id < 97 ? 4 : 1));
    CHECK(entry.num == entry.den);
    sum += double{entry.num};
  }
  CHECK(sum == 24 * 4 + 6);
  CHECK(kept("uniform-repo", head, {}, 30, 2) != entries);
}
