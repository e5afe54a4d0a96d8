// SPDX-License-Identifier: Apache-2.0
// Edge cases: one or two tokens, one dimension, equal keys, duplicates, zero values, very large logits.
#include <algorithm>
#include <cmath>

#include <support/rows.hpp>

using namespace kvbench;
using namespace kvbench::testing;

namespace {

/// Replaces all tokens by repetitions of the first `repeat` ones.
void repeat_tokens(HeadData& head, Index repeat) {
  for (Index j = repeat; j < head.total; ++j) {
    const Index from = j % repeat;
    std::copy_n(head.keys.begin() + from * head.d, head.d, head.keys.begin() + j * head.d);
    std::copy_n(head.values.begin() + from * head.dv, head.dv, head.values.begin() + j * head.dv);
  }
}

void check_finite(const Result& result) { CHECK(all_finite(result.answers)); }

/// N and D are different sets: some entry has a weight in one sum only.
bool two_sets(const Result& result) {
  return std::ranges::any_of(result.entries, [](const auto& row) {
    return std::ranges::any_of(row, [](const Entry& entry) { return (entry.num != 0) != (entry.den != 0); });
  });
}

/// Runs prefill and decode at small, half, full and larger budgets; every entry must satisfy the contract. Calls
/// check(result) for each block of queries.
template <class Change, class Check>
void run_all(const Shape& shape, Change change, Check check) {
  for_each_row([&](const Row& row, Backend& backend) {
    Heads heads = heads_for(row, shape, backend);
    for (HeadData& head : heads) change(head);
    for (const Index budget : {Index{1}, Index{2}, Index{3}, shape.n / 2 + 1, shape.n, shape.n + 5}) {
      if (budget < 1) continue;
      CAPTURE(budget);
      const Instance instance = try_open(row, heads, budget, 1, backend);
      if (!instance.cache) continue;
      for (const Result& result : prefill(instance, heads, backend)) check(result);
      for (const auto& head : decode(instance, heads, 3, row.info->observes, backend)) {
        for (const Result& result : head) check(result);
      }
    }
  });
}

template <class Change>
void run_all(const Shape& shape, Change change) {
  run_all(shape, change, check_finite);
}
void run_all(const Shape& shape) {
  run_all(shape, [](HeadData&) {});
}

}  // namespace

TEST_CASE("contexts of one, two and three tokens") {
  for (const Index n : {1, 2, 3}) {
    CAPTURE(n);
    run_all({.n = n, .decoded = 4});
  }
}

TEST_CASE("one dimension, and values wider than keys") {
  run_all({.n = 20, .decoded = 4, .d = 1, .dv = 1});
  run_all({.n = 20, .decoded = 4, .d = 2, .dv = 7});
}

TEST_CASE("one query head, and many") {
  run_all({.n = 20, .decoded = 4, .group = 1});
  run_all({.n = 20, .decoded = 4, .group = 7});
}

TEST_CASE("duplicated tokens and equal keys") {
  run_all({.n = 40, .decoded = 5}, [](HeadData& head) { repeat_tokens(head, 2); });
  run_all({.n = 40, .decoded = 5}, [](HeadData& head) { repeat_tokens(head, 1); });
  run_all({.n = 40, .decoded = 5}, [](HeadData& head) { head.keys.assign(head.keys.size(), 0); });
}

TEST_CASE("zero values are answered with zero") {
  const auto zero_values = [](HeadData& head) { head.values.assign(head.values.size(), 0); };
  run_all({.n = 40, .decoded = 5}, zero_values, [](const Result& result) {
    CHECK(max_difference(result.answers, std::vector<float>(result.answers.size(), 0)) == 0);
  });
}

TEST_CASE("logits of several hundreds") {
  const auto sharp = [](HeadData& head) {
    for (float& x : head.queries) x *= 200;
  };
  run_all({.n = 40, .decoded = 5}, sharp, [](const Result& result) {
    // Where N and D are drawn independently and D lacks the peak that N holds, the quotient has no bound and can
    // overflow fp32.
    if (two_sets(result)) {
      CHECK(std::ranges::none_of(result.answers, [](float x) { return std::isnan(x); }));
    } else {
      check_finite(result);
    }
  });
}
