// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Settings = std::vector<Assignment>;
using Numbers = std::vector<double>;

constexpr Index window = 3, buffer = 5;

double product(const std::vector<float>& a, Index i, const std::vector<float>& b, Index j, Index d) {
  double sum = 0;
  for (Index c = 0; c < d; ++c)
    sum += double{a[static_cast<std::size_t>(i * d + c)]} * double{b[static_cast<std::size_t>(j * d + c)]};
  return sum;
}

Numbers softmax_of(Numbers logits) {
  double sum = 0;
  for (double& x : logits) sum += x = std::exp(x);
  for (double& x : logits) x /= sum;
  return logits;
}

/// The released rule, on the tokens that are held and the queries at the positions last - window + 1 .. last.
Ids serial(const HeadData& head, const Ids& held, Index last, Index budget, double lambda, Index kernel) {
  const auto m = held.size(), past = m - window;
  const auto at = [&](std::size_t i) { return Index{held[i]}; };
  Numbers seen(past);
  for (Index q = last - window + 1; q <= last; ++q) {
    Numbers logits(past, -1e30);
    for (Index g = 0; g < head.group; ++g)
      for (std::size_t j = 0; j < past; ++j)
        logits[j] = std::max(logits[j],
                             double{head.scale} * product(head.queries, g * head.total + q, head.keys, at(j), head.d));
    const Numbers weights = softmax_of(logits);
    for (std::size_t j = 0; j < past; ++j) seen[j] += weights[j] / window;
  }
  Numbers mean(m);
  for (std::size_t i = 0; i < m; ++i) {
    const auto cosine = [&](std::size_t j) {
      const auto square = [&](std::size_t a) { return product(head.keys, at(a), head.keys, at(a), head.d); };
      return i == j ? 0 : product(head.keys, at(i), head.keys, at(j), head.d) / std::sqrt(square(i) * square(j));
    };
    std::size_t left_out = 0;
    for (std::size_t j = 0; j < m; ++j)
      if (cosine(j) > 0.5) left_out = j;
    for (std::size_t j = 0; j < m; ++j)
      if (j != left_out) mean[j] += cosine(j) / static_cast<double>(m);
  }
  const Numbers alike = softmax_of(mean);
  Numbers scores(past);
  for (std::size_t j = 0; j < past; ++j) {
    for (std::size_t k = 0; k < past; ++k)
      if (std::abs(static_cast<Index>(k) - static_cast<Index>(j)) <= kernel / 2)
        scores[j] = std::max(scores[j], lambda * seen[k]);
    scores[j] -= (1 - lambda) * alike[j];
  }
  Ids order(past);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](TokenId a, TokenId b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  Ids kept;
  for (Index i = 0; i < budget - window; ++i)
    kept.push_back(held[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])]);
  kept.insert(kept.end(), held.end() - window, held.end());
  std::ranges::sort(kept);
  return kept;
}

/// Takes tokens up to `end`, but not more than `at_once` together, and shows the cache their queries.
void decode(CompressedCache& cache, const HeadData& head, Index begin, Index end, Index at_once) {
  while (begin < end) {
    const Index stop = begin + append(cache, token_block(head, begin, std::min(end, begin + at_once), ref()));
    cache.announce(query_block(head, begin, stop, stop, ref()));
    begin = stop;
  }
}

Ids held_by(const CompressedCache& cache, const HeadData& head, Index tokens) {
  return answering(cache, query_block(head, tokens - 1, tokens, tokens, ref()), head);
}

}  // namespace

// Signs + + - + - + of keys of one channel. Of the cosines of a column, others less itself, + has 3 - 2 = 1 and - has
// 1 - 4 = -3. The last alike is 5 for 0 1 3, 3 for 5, 4 for 2 and 2 for 4: 1 1 -4 0 -4 -2. Token 5 is the window.
TEST_CASE("r-kv keeps keys that few others resemble, and the newest of those that are alike") {
  const HeadData head = small_head({2, 1, -1, 5, -3, 1, 0}, 6);
  const auto kept = [&](Index budget) {
    return kept_tokens("r-kv", {{"window", "1"}, {"kernel", "1"}, {"lambda", "0"}}, head, budget);
  };
  CHECK(kept(1) == Ids{5});
  CHECK(kept(3) == Ids{2, 4, 5});
  CHECK(kept(4) == Ids{2, 3, 4, 5});
  CHECK(kept(5) == Ids{0, 2, 3, 4, 5});
  CHECK(kept(6) == Ids{0, 1, 2, 3, 4, 5});
}

// Keys at 0, 90, 45 and 180 degrees; token 4, the window, has none. The last alike is 2 for 0 and 1, and 1 for 2; none
// is like 3, which leaves out its cosine of -1 with token 0. Sums by column: 0 has .71 of 2; 1 has 0; 2 has -.71 of 3;
// 3 has -1 of 0 and -.71 of 2.
TEST_CASE("r-kv leaves out the first token where no key is alike") {
  HeadData head = small_head(std::vector<float>(6), 5);
  head.d = 2;
  head.keys = {1, 0, 0, 1, 1, 1, -1, 0, 0, 0, 0, 0};
  head.queries.assign(12, 0);
  const auto kept = [&](Index budget) {
    return kept_tokens("r-kv", {{"window", "1"}, {"kernel", "1"}, {"lambda", "0"}}, head, budget);
  };
  CHECK(kept(2) == Ids{3, 4});
  CHECK(kept(3) == Ids{2, 3, 4});
  CHECK(kept(4) == Ids{1, 2, 3, 4});
}

// Query heads 1 and -1: the larger logit of a key is its size, .5 3 1 2 1; the maximum of three is 3 3 3 2 2.
TEST_CASE("r-kv takes the largest logit of the query group") {
  HeadData head = small_head({0.5f, -3, 1, 2, -1, 0, 0}, 6, 2);
  for (std::size_t i = 7; i < 14; ++i) head.queries[i] = -1;
  const auto kept = [&](const char* kernel, Index budget) {
    return kept_tokens("r-kv", {{"window", "1"}, {"kernel", kernel}, {"lambda", "1"}}, head, budget);
  };
  CHECK(kept("1", 2) == Ids{1, 5});
  CHECK(kept("1", 3) == Ids{1, 3, 5});
  CHECK(kept("3", 4) == Ids{0, 1, 2, 5});
}

// Logits 3 1 0: 0 and the window, 2, are held. With 3 and 4 the buffer is full, and the query of 4 still sees all; then
// 3, with the logit 5, is kept beside 4.
TEST_CASE("r-kv lets all held tokens compete where the buffer is full") {
  const HeadData head = small_head({3, 1, 0, 5, 0, 1, 1}, 3);
  const Settings settings = {{"window", "1"}, {"kernel", "1"}, {"lambda", "1"}, {"buffer", "2"}};
  const auto cache = open_cache("r-kv", settings, prompt_of(head, ref()), 2, 0);
  CHECK(cache->takes(token_block(head, 3, 7, ref())) == 2);
  decode(*cache, head, 3, 5, 9);
  CHECK(held_by(*cache, head, 5) == Ids{0, 2, 3, 4});
  decode(*cache, head, 5, 6, 9);
  CHECK(held_by(*cache, head, 6) == Ids{3, 4, 5});
}

TEST_CASE("r-kv keeps what the released rule keeps, written out serially, while decoding too") {
  for (const auto& [budget, lambda, kernel] :
       {std::tuple<Index, double, Index>{12, 0.07, 3}, {20, 0.6, 1}, {9, 0.9, 5}}) {
    const HeadData head = random_head({.n = 300, .decoded = 17, .d = 4, .dv = 3, .group = 2}, 77, ref());
    const Settings settings = {
        {"window", "3"}, {"buffer", "5"}, {"lambda", fmt::format("{}", lambda)}, {"kernel", fmt::format("{}", kernel)}};
    for (const Index at_once : {1, 17}) {
      const auto cache = open_cache("r-kv", settings, prompt_of(head, ref()), budget, 0);
      Ids held(300);
      std::iota(held.begin(), held.end(), 0);
      held = serial(head, held, 299, budget, lambda, kernel);
      CHECK(held_by(*cache, head, 300) == held);
      for (Index t = 300; t < 317; t += buffer) {
        const Index end = std::min<Index>(317, t + buffer);
        decode(*cache, head, t, end, at_once);
        for (Index i = t; i < end; ++i) held.push_back(static_cast<TokenId>(i));
        CHECK(held_by(*cache, head, end) == held);
        if (end - t == buffer) held = serial(head, held, end - 1, budget, lambda, kernel);
      }
    }
  }
}

TEST_CASE("r-kv holds a context below its budget until the buffer is full beside it") {
  const HeadData head = random_head({.n = 10, .decoded = 17, .d = 4, .dv = 3}, 78, ref());
  const auto cache = open_cache("r-kv", {{"window", "3"}, {"buffer", "5"}}, prompt_of(head, ref()), 14, 0);
  decode(*cache, head, 10, 21, 1);  // 20 tokens after two buffers are 14 + 5 and one
  CHECK(held_by(*cache, head, 21).size() == 15);
  CHECK(cache->footprint()[2].rows == 3 * window);
}

TEST_CASE("r-kv refuses a buffer below its window, and too many pairs") {
  const MethodInfo& info = find_method("r-kv");
  CHECK_THROWS_WITH(info.bind(Settings{{"buffer", "4"}}),
                    "parameter 'r-kv.buffer' is 4; it must be at least r-kv.window, 8");
  const HeadData head = random_head({.n = 400, .decoded = 1}, 79, ref());
  CHECK_THROWS_AS(open_cache("r-kv", {{"max_pairs", "90000"}}, prompt_of(head, ref()), 20, 0), Infeasible);
}
