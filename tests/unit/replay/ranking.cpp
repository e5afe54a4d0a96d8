// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/exact/ranking.hpp>

#include <algorithm>

#include <doctest/doctest.h>
#include <support/backends.hpp>

#include <kvbench/replay/exact/radix_sort.hpp>

#include <kvbench/testing/head.hpp>

using namespace kvbench;
using namespace kvbench::replay;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

/// Rows of logits with shares that identify the tokens: token j of any row has the share 2^j.
struct Rows {
  Index n;
  std::vector<float> logits, shares;
  std::vector<std::int32_t> first, last;
  Buffer<const float> scores;

  Rows(Backend& backend, Index columns, std::vector<float> values, std::vector<std::int32_t> begin,
       std::vector<std::int32_t> end)
      : n(columns), logits(std::move(values)), first(std::move(begin)), last(std::move(end)) {
    const auto rows = static_cast<Index>(logits.size()) / n;
    for (Index i = 0; i < rows * n; ++i) shares.push_back(std::ldexp(1.0f, static_cast<int>(i % n)));
    scores = backend.adopt(std::vector(logits), rows, n);
  }
  ExactRows view() const { return {scores, logits, shares, first, last}; }
};

}  // namespace

TEST_CASE("the best tokens of a range, by hand") {
  // Falling: 4 (9), 1 (7), 3 (7), 0 (-0), 2 (0), 5 (-2): -0 equals 0.
  const Rows rows(ref(), 6, {-0.0f, 7, 0, 7, 9, -2}, {0}, {6});
  Ranking ranking;
  const BestTokens two = ranking.best(ref(), rows.view(), 2, 0, 6, 0);  // 4 and 1
  CHECK(two.mass == Approx(16 + 2));
  CHECK(two.hold(9, 4));
  CHECK(two.hold(7, 1));
  CHECK_FALSE(two.hold(7, 3));
  const BestTokens four = ranking.best(ref(), rows.view(), 4, 0, 6, 0);  // and 3 and 0
  CHECK(four.mass == Approx(16 + 2 + 8 + 1));
  CHECK(four.hold(-0.0f, 0));
  CHECK_FALSE(four.hold(0, 2));
  const BestTokens inside = ranking.best(ref(), rows.view(), 2, 2, 4, 0);  // of 2 and 3: both
  CHECK(inside.mass == Approx(8 + 4));
  CHECK_THROWS_AS(ranking.best(ref(), rows.view(), 3, 2, 4, 0), std::logic_error);
}

TEST_CASE("the best tokens of ranges equal those of a sort of the visible tokens") {
  const Index n = 90, m = 3, group = 2;
  std::vector<float> logits = random_numbers(group * m * n, 3, 0);
  for (float& x : logits) x = std::round(4 * x);  // many ties
  const Rows rows(cpu(), n, logits, {0, 10, 0}, {90, 90, 50});
  Ranking ranking;
  for (Index r = 0; r < group * m; ++r) {
    for (const auto& [k, first, last] :
         {std::tuple<Index, Index, Index>{1, 0, 90}, {30, 0, 90}, {7, 12, 40}, {25, 15, 90}}) {
      std::vector<std::int32_t> seen;
      const auto i = static_cast<std::size_t>(r % m);
      for (auto c = std::max<Index>(first, rows.first[i]); c < std::min<Index>(last, rows.last[i]); ++c) {
        seen.push_back(static_cast<std::int32_t>(c));
      }
      const float* row = logits.data() + r * n;
      std::ranges::stable_sort(seen, [&](auto a, auto b) { return row[a] > row[b]; });
      const BestTokens best = ranking.best(cpu(), rows.view(), k, first, last, r);
      for (std::size_t at = 0; at < seen.size(); ++at) {
        CHECK(best.hold(row[seen[at]], seen[at]) == (at < static_cast<std::size_t>(k)));
      }
    }
  }
}

TEST_CASE("the best tokens do not depend on the order of requests") {
  const Index n = 400;
  std::vector<float> logits = random_numbers(n, 5, 0);
  for (float& x : logits) x = std::round(40 * x);
  Rows rows(cpu(), n, logits, {0}, {400});
  for (Index j = 0; j < n; ++j) rows.shares[static_cast<std::size_t>(j)] = 0.1f * static_cast<float>(j % 7 + 1);
  std::vector<std::int32_t> order;
  for (std::int32_t j = 5; j < 390; ++j) order.push_back(j);
  std::ranges::stable_sort(order, [&](auto a, auto b) { return logits[a] > logits[b]; });
  Ranking ranking;
  for (const Index k : {130, 1, 16, 17, 300, 33, 32, 15, 385}) {
    CAPTURE(k);
    double mass = 0;  // in the order of the ranking: the same bits
    for (Index at = 0; at < k; ++at) mass += static_cast<double>(rows.shares[static_cast<std::size_t>(order[at])]);
    const BestTokens best = ranking.best(cpu(), rows.view(), k, 5, 390, 0);
    CHECK(best.last == order[k - 1]);
    CHECK(best.mass == mass);
  }
}

TEST_CASE("radix_sort sorts by key and is stable") {
  struct Item {
    std::uint32_t key;
    int place;
    bool operator==(const Item&) const = default;
  };
  const auto sorted = [](std::vector<Item> items) {
    radix_sort(items, [](const Item& item) { return item.key; });
    return items;
  };
  CHECK(sorted({}).empty());
  CHECK(sorted({{7, 0}, {7, 1}}) == std::vector<Item>{{7, 0}, {7, 1}});
  // All 32 bits, three digits of 11.
  CHECK(sorted({{0xffffffff, 0}, {0, 1}, {0x80000000, 2}, {0xffffffff, 3}, {0x7fffffff, 4}, {1, 5}}) ==
        std::vector<Item>{{0, 1}, {1, 5}, {0x7fffffff, 4}, {0x80000000, 2}, {0xffffffff, 0}, {0xffffffff, 3}});
  // The least is no multiple of a power of two: 1000 + 12 bits, two digits of 6.
  CHECK(sorted({{5000, 0}, {1000, 1}, {1063, 2}, {1064, 3}, {1001, 4}, {5000, 5}}) ==
        std::vector<Item>{{1000, 1}, {1001, 4}, {1063, 2}, {1064, 3}, {5000, 0}, {5000, 5}});
}
