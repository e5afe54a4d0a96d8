// SPDX-License-Identifier: Apache-2.0
// Requirements on every row: entries within budget and footprint, determinism, declared weights, nested budgets.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include <support/rows.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

constexpr Index budgets[] = {1, 2, 5, 13, 33, 40, 47, 48, 60};

bool stores_plain_numbers(const FootprintArray& array) {
  return array.element == Element::kv || array.element == Element::f32 || array.element == Element::f16;
}

/// Numbers in the arrays that hold keys and values, those of the deployment's cache.
Index kept_numbers(const Footprint& arrays) {
  Index numbers = 0;
  for (const FootprintArray& array : arrays) {
    if (array.element == Element::kv) numbers += array.rows * array.cols;
  }
  return numbers;
}

/// Numbers that the entries of query i need in memory: a key for each token of N or D, a value for each of N.
Index needed_numbers(const std::vector<std::vector<Entry>>& rows, const HeadData& head, Index i) {
  std::set<TokenId> keys, values;
  const Index m = static_cast<Index>(rows.size()) / head.group;
  for (Index g = 0; g < head.group; ++g) {
    for (const Entry& entry : rows[static_cast<std::size_t>(g * m + i)]) {
      if (entry.num != 0 || entry.den != 0) keys.insert(entry.id);
      if (entry.num != 0) values.insert(entry.id);
    }
  }
  return std::ssize(keys) * head.d + std::ssize(values) * head.dv;
}

bool weighted(const std::vector<std::vector<Entry>>& rows) {
  return std::ranges::any_of(rows, [](const auto& row) {
    return std::ranges::any_of(row, [](const Entry& entry) { return entry.num != 1 || entry.den != 1; });
  });
}

void check_footprint(const Footprint& arrays, const std::vector<std::vector<Entry>>& rows, const HeadData& head) {
  Index numbers = 0;
  bool meta = false;
  for (const FootprintArray& array : arrays) {
    CHECK_FALSE(array.name.empty());
    CHECK(array.rows >= 0);
    CHECK(array.cols >= 0);
    if (!array.meta() && stores_plain_numbers(array)) numbers += array.rows * array.cols;
    meta |= array.meta() && array.rows * array.cols > 0;
  }
  const bool codes = std::ranges::any_of(
      arrays, [](const FootprintArray& array) { return !array.meta() && !stores_plain_numbers(array); });
  if (!codes) {
    for (Index i = 0; i < std::ssize(rows) / head.group; ++i) CHECK(numbers >= needed_numbers(rows, head, i));
  }
  if (weighted(rows)) CHECK(meta);
}

/// Checks the budget of kinds that are bound by it: per kv head, or on average over the heads of a layer.
void check_budget(const Row& row, const std::vector<Footprint>& arrays, const std::vector<Result>& results,
                  const Heads& heads, Index budget) {
  const Kind kind = row.info->kind;
  const bool per_head =
      row.info->granularity == Granularity::query_head || row.params.text().find("per=query_head") != std::string::npos;
  const Index copies = per_head ? heads[0].group : 1;
  std::vector<Index> entries(results[0].entries.size(), 0);
  Index numbers = 0;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    numbers += kept_numbers(arrays[h]);
    for (std::size_t r = 0; r < entries.size(); ++r) entries[r] += std::ssize(ids_of(results[h].entries[r]));
  }
  if (kind == Kind::eviction || kind == Kind::merging || kind == Kind::retrieval) {
    for (const Index count : entries) CHECK(count <= std::ssize(heads) * budget);
  }
  if (kind == Kind::eviction || kind == Kind::merging || kind == Kind::sampling) {
    CHECK(numbers <= std::ssize(heads) * copies * budget * (heads[0].d + heads[0].dv));
  }
}

}  // namespace

TEST_CASE("entries satisfy the contract and the budget, and the footprint holds them") {
  for_each_row([](const Row& row, Backend& backend) {
    const Heads heads = heads_for(row, {}, backend);
    bool ran = false;
    for (const Index budget : budgets) {
      CAPTURE(budget);
      const Instance instance = try_open(row, heads, budget, 1, backend);
      if (!instance.cache) continue;
      ran |= budget >= 13;
      const auto results = prefill(instance, heads, backend);
      const auto footprints = instance.cache->footprint();
      for (std::size_t h = 0; h < heads.size(); ++h) {
        CHECK(all_finite(results[h].answers));
        check_footprint(footprints[h], results[h].entries, heads[h]);
        const Protected fixed = instance.cache->protected_tokens()[h];
        CHECK(fixed.sinks >= 0);
        CHECK(fixed.recent >= 0);
        if (row.info->plan == nullptr) CHECK(fixed.sinks + fixed.recent <= budget);
      }
      // A plan may give this layer more than the mean.
      if (row.info->plan == nullptr) check_budget(row, footprints, results, heads, budget);
      const auto decoded = decode(instance, heads, 5, row.info->observes, backend);
      for (std::size_t h = 0; h < heads.size(); ++h) {
        check_footprint(instance.cache->footprint()[h], decoded[h].back().entries, heads[h]);
      }
    }
    CHECK(ran);
  });
}

TEST_CASE("the layers of a plan hold the budget on average") {
  for_each_row([](const Row& row, Backend&) {
    if (row.info->plan == nullptr) return;
    for (const Index budget : {8, 40, 100}) {
      const auto layers = row.info->plan(4, 48, budget, row.params);
      REQUIRE(layers.size() == 4);
      Index sum = 0;
      for (const Index layer : layers) {
        CHECK(layer >= 1);
        sum += std::min<Index>(layer, 48);
      }
      // Equal steps rounded down may miss the share of the last layer by two tokens, the mean by one.
      CHECK(sum <= 4 * budget + 4);
    }
  });
}

/// Whether another seed gives other entries or answers, in prefill, or in decode, because a method may draw for decoded
/// tokens only. Checks that the same seed gives the same results.
bool depends_on_seed(const Row& row, Index n, Backend& backend) {
  Heads heads = heads_for(row, {.n = n}, backend);
  // With larger values the step of balancekv-repo forces every sign.
  for (HeadData& head : heads) std::ranges::for_each(head.values, [](float& x) { x /= 16; });
  const auto run = [&](std::uint32_t seed) {
    auto results = prefill(open(row, heads, 24, seed, backend), heads, backend);
    for (auto& head : decode(open(row, heads, 24, seed, backend), heads, 5, row.info->observes, backend)) {
      results.insert(results.end(), std::move_iterator(head.begin()), std::move_iterator(head.end()));
    }
    return results;
  };
  const auto first = run(1);
  bool differs = false;
  for (const std::uint32_t seed : {1u, 2u, 3u, 4u}) {
    const auto again = run(seed);
    REQUIRE(again.size() == first.size());
    for (std::size_t h = 0; h < again.size(); ++h) {
      const bool same = again[h].entries == first[h].entries && again[h].answers == first[h].answers;
      if (seed == 1 || !row.info->depends_on_seed(row.params)) CHECK(same);
      differs |= !same;
    }
  }
  return differs;
}

TEST_CASE("the same seed gives the same results, and only configurations that draw depend on it") {
  for_each_row([](const Row& row, Backend& backend) {
    // In a short context a method that draws initial centroids may have no choice.
    const bool expected = row.info->depends_on_seed(row.params);
    CHECK((depends_on_seed(row, 48, backend) || (expected && depends_on_seed(row, 480, backend))) == expected);
  });
}

TEST_CASE("sums of weights are as declared") {
  for_each_row([](const Row& row, Backend& backend) {
    const Heads heads = heads_for(row, {}, backend);
    for (const Index budget : budgets) {
      CAPTURE(budget);
      const Instance instance = try_open(row, heads, budget, 1, backend);
      if (!instance.cache) continue;
      for (const Result& result : prefill(instance, heads, backend)) {
        for (const auto& entries : result.entries) {
          double sum = 0;
          for (const Entry& entry : entries) {
            CHECK(entry.num >= 0);
            sum += entry.den;
            if (row.info->properties.weight_sum == WeightSum::ones) {
              CHECK(entry.num == 1);
              CHECK(entry.den == 1);
            }
          }
          if (row.info->properties.weight_sum == WeightSum::context) CHECK(sum == doctest::Approx(48).epsilon(1e-5));
          if (row.info->properties.weight_sum == WeightSum::at_most_context) CHECK(sum <= 48 * (1 + 1e-5));
        }
      }
    }
  });
}

TEST_CASE("larger budgets keep the tokens of smaller ones, where declared") {
  for_each_row([](const Row& row, Backend& backend) {
    const Property& nested = row.info->properties.nested_budgets;
    if (!nested.holds) {
      CHECK_FALSE(nested.reason.empty());
      return;
    }
    const Heads heads = heads_for(row, {}, backend);
    std::vector<std::vector<Ids>> before(heads.size());
    for (const Index budget : budgets) {
      CAPTURE(budget);
      const Instance instance = try_open(row, heads, budget, 1, backend);
      if (!instance.cache) continue;
      const auto results = prefill(instance, heads, backend);
      for (std::size_t h = 0; h < heads.size(); ++h) {
        std::vector<Ids> kept;
        for (const auto& entries : results[h].entries) kept.push_back(ids_of(entries));
        for (std::size_t r = 0; r < before[h].size(); ++r) CHECK(std::ranges::includes(kept[r], before[h][r]));
        before[h] = kept;
      }
    }
  });
}
