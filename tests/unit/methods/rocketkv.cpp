// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/rocketkv.hpp>

#include <numeric>

#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

/// The rule, written out: the tokens of the prompt that stay, and those that answer a query.
struct Serial {
  const HeadData& head;
  Index window, kernel, budget;
  RocketkvSizes sizes;

  double query(Index g, Index i, Index c) const { return head.queries[at((g * head.total + i) * head.d + c)]; }
  double key(Index j, Index c) const { return head.keys[at(j * head.d + c)]; }
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  std::vector<Index> stay() const {
    const Index past = head.n - window;
    std::vector<double> votes(at(past), 0), pooled = votes;
    for (Index g = 0; g < head.group; ++g) {
      for (Index i = past; i < head.n; ++i) {
        std::vector<double> row;
        for (Index j = 0; j <= i; ++j) {
          double product = 0;
          for (Index c = 0; c < head.d; ++c) product += query(g, i, c) * key(j, c);
          row.push_back(std::exp(product * static_cast<double>(head.scale)));
        }
        const double sum = std::accumulate(row.begin(), row.end(), 0.0);
        for (Index j = 0; j < past; ++j) votes[at(j)] += row[at(j)] / sum;
      }
    }
    for (Index j = 0; j < past; ++j) {
      for (Index k = std::max<Index>(0, j - kernel / 2); k <= std::min(past - 1, j + kernel / 2); ++k)
        pooled[at(j)] = std::max(pooled[at(j)], votes[at(k)]);
    }
    std::vector<Index> order(at(past));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater{}, [&](Index j) { return pooled[at(j)]; });
    order.resize(at(sizes.stay - window));
    for (Index j = past; j < head.n; ++j) order.push_back(j);
    std::ranges::sort(order);
    return order;
  }

  /// For the query at position i, of the tokens held that it sees.
  Ids answering(Index i, const std::vector<Index>& held) const {
    std::vector<double> size(at(head.d), 0), sum = size, mean(held.size(), 0);
    for (Index g = 0; g < head.group; ++g) {
      for (Index c = 0; c < head.d; ++c) size[at(c)] += std::abs(query(g, i, c)), sum[at(c)] += query(g, i, c);
    }
    std::vector<Index> channels(at(head.d));
    std::iota(channels.begin(), channels.end(), 0);
    std::ranges::stable_sort(channels, std::greater{}, [&](Index c) { return size[at(c)]; });
    channels.resize(at(sizes.channels));
    for (Index g = 0; g < head.group; ++g) {
      double all = 0, taken = 0;
      for (Index c = 0; c < head.d; ++c) all += std::abs(query(g, i, c));
      for (const Index c : channels) taken += std::abs(query(g, i, c));
      std::vector<double> row;
      for (std::size_t t = 0; t < held.size(); ++t) {
        const std::size_t page = at(sizes.page), begin = t / page * page, end = std::min(begin + page, held.size());
        double score = 0;
        for (const Index c : channels) {
          double bound = key(held[begin], c);
          for (std::size_t u = begin; u < end; ++u)
            bound = sum[at(c)] > 0 ? std::max(bound, key(held[u], c)) : std::min(bound, key(held[u], c));
          score += query(g, i, c) * bound;
        }
        row.push_back(std::exp(score * static_cast<double>(head.scale) * std::sqrt(all / taken)));
      }
      const double whole = std::accumulate(row.begin(), row.end(), 0.0);
      for (std::size_t t = 0; t < row.size(); ++t) mean[t] += row[t] / whole;
    }
    std::vector<std::size_t> order(held.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return mean[a] > mean[b] * (1 + 1e-5); });
    Ids ids;
    for (const std::size_t t : order) {
      if (std::ssize(ids) < budget) ids.push_back(static_cast<TokenId>(held[t]));
    }
    std::ranges::sort(ids);
    return ids;
  }
};

}  // namespace

// c = 1024 / 128 = 8 and a = 0.2 + 0.06 * 3 = 0.38: 1024 / 8^0.38 = 464.6. c' = 464 / 128 = 3.625, whose root is 1.9,
// and 64 * 2 / 3.625 = 35.3. With a = 0.5 they are 362.04, 2.828 and 45.3. A budget of half the tokens leaves nothing
// to compress, one of 400 has c = 1.28: 1024 / 1.28^0.2214 = 969.5, c' = 1.21, 64 / 1.21 = 52.8.
TEST_CASE("the sizes of rocketkv follow from the budget") {
  const auto check = [](RocketkvSizes sizes, Index stay, Index page, Index channels) {
    CHECK(sizes.stay == stay);
    CHECK(sizes.page == page);
    CHECK(sizes.channels == channels);
  };
  check(rocketkv_sizes(1024, 64, 64, -1), 464, 2, 35);
  check(rocketkv_sizes(1024, 64, 64, 0.5), 362, 2, 45);
  check(rocketkv_sizes(1024, 512, 64, -1), 1024, 1, 64);
  check(rocketkv_sizes(1024, 400, 64, -1), 969, 1, 53);
  check(rocketkv_sizes(8, 100, 64, -1), 8, 1, 64);
  check(rocketkv_sizes(1024, 1, 64, 1), 2, 1, 64);
}

// split = 0 lets all tokens stay. For B = 1 and 2, c' is 4 and 2, and pages have 2 tokens: their largest keys are 5 4 0
// 2, their smallest 1 4 0 2. A page's first token comes first, though the second has the logit 5. For B = 3, c' = 4/3,
// so that pages have one token.
TEST_CASE("rocketkv ranks pages by bounds of the sign of the query group") {
  HeadData head = small_head({1, 5, 4, 4, 0, 0, 2, 2, 1}, 8);
  const auto best = [&](Index budget) {
    const QueryBlock block = query_block(head, 8, 9, 9, ref());
    return answering(*open_cache("rocketkv", {{"split", "0"}}, prompt_of(head, ref()), budget, 0), block, head);
  };
  CHECK(best(1) == Ids{0});
  CHECK(best(2) == Ids{0, 1});
  CHECK(best(3) == Ids{1, 2, 3});
  CHECK(best(8) == Ids{0, 1, 2, 3, 4, 5, 6, 7});
  head.queries[8] = -1;
  CHECK(best(1) == Ids{4});
  CHECK(best(2) == Ids{4, 5});
}

// split = 1 leaves 8 / 4 = 2 tokens for B = 1: the last one, whose query votes, and token 1, with the largest weight.
// Tokens 2 and 3 are lost, though the query at position 8 would prefer them.
TEST_CASE("rocketkv drops tokens of the prompt for good") {
  HeadData head{.n = 8, .total = 9, .d = 2, .dv = 1};
  head.keys = {0, 0, 5, 0, 0, 9, 0, 9, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0};
  head.values.assign(9, 1);
  head.queries.assign(18, 1);
  for (std::size_t i = 0; i < 8; ++i) head.queries[2 * i + 1] = 0;
  const std::vector<Assignment> settings = {{"split", "1"}, {"window", "1"}, {"kernel", "1"}};
  const auto cache = open_cache("rocketkv", settings, prompt_of(head, ref()), 1, 0);
  CHECK(answering(*cache, query_block(head, 8, 9, 9, ref()), head) == Ids{1});
  CHECK(cache->footprint()[0].rows == 2);
  CHECK(append(*cache, token_block(head, 8, 9, ref())) == 1);
  CHECK(cache->footprint()[0].rows == 3);
}

TEST_CASE("rocketkv holds what its rule says, in prefill and decode") {
  const HeadData head = random_head({.n = 64, .decoded = 9, .group = 2}, 21, ref());
  for (const Index budget : {3, 6, 20}) {
    CAPTURE(budget);
    const Serial serial{head, 8, 5, budget, rocketkv_sizes(64, budget, head.d, -1)};
    const auto cache = open_cache("rocketkv", {{"window", "8"}, {"kernel", "5"}}, prompt_of(head, ref()), budget, 0);
    std::vector<Index> held = serial.stay();
    const QueryBlock block = query_block(head, 64, 73, 73, ref());
    for (Index i = 0; i < 9; ++i)
      CHECK(answering(*cache, block, head, static_cast<std::size_t>(i)) == serial.answering(64 + i, held));
    for (Index t = 64; t < 73;) {
      const Index end = t + append(*cache, token_block(head, t, 73, ref()));
      const QueryBlock step = query_block(head, t, end, end, ref());
      for (Index i = 0; t < end; ++t, ++i) {
        held.push_back(t);
        CHECK(answering(*cache, step, head, static_cast<std::size_t>(i)) == serial.answering(t, held));
      }
    }
  }
}
