// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/vattention.hpp>

#include <map>

#include <doctest/doctest.h>

#include <support/small.hpp>

#include <kvbench/core/statistics.hpp>
#include <kvbench/methods/stages/draws.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Weights = std::map<TokenId, double>;

Weights weights_of(const std::vector<Entry>& entries) {
  Weights weights;
  for (const Entry& entry : entries) {
    CHECK(entry.num == entry.den);
    weights[entry.id] = static_cast<double>(entry.den);
  }
  return weights;
}

/// The rule, written out: the weights of the tokens that answer a query with these logits.
Weights rule(const std::vector<float>& logits, const VattentionParams& p, Index budget, const Draws& draws, Index row) {
  const Index end = std::ssize(logits);
  Weights weights;
  if (end <= budget) {
    for (Index j = 0; j < end; ++j) weights[static_cast<TokenId>(j)] = 1;
    return weights;
  }
  const Index sinks = std::min(p.sinks, budget / 4), window = std::min(p.window, budget / 4);
  const Index rest = budget - sinks - window, top = static_cast<Index>(p.heavy * static_cast<double>(rest));
  for (Index j = 0; j < sinks; ++j) weights[static_cast<TokenId>(j)] = 1;
  for (Index j = end - window; j < end; ++j) weights[static_cast<TokenId>(j)] = 1;
  for (Index k = 0; k < top; ++k) {
    Index best = -1;
    for (Index j = sinks; j < end - window; ++j) {
      if (weights.contains(static_cast<TokenId>(j))) continue;
      if (best < 0 || logits[static_cast<std::size_t>(j)] > logits[static_cast<std::size_t>(best)]) best = j;
    }
    weights[static_cast<TokenId>(best)] = 1;
  }
  const Index size = end - sinks - window, most = rest - top;
  const auto token = [&](Index draw, int sample) {
    const PhiloxBlock x = draws.block(row, static_cast<std::uint32_t>(draw));
    const double u = uniform52(x.x[2 * sample], x.x[2 * sample + 1]);
    return static_cast<TokenId>(sinks + static_cast<Index>(u * static_cast<double>(size)));
  };
  const auto share = [&](TokenId id) { return std::exp(static_cast<double>(logits[static_cast<std::size_t>(id)])); };

  const Index b = std::min(most, std::max<Index>(2, static_cast<Index>(p.base * static_cast<double>(size))));
  double mean = 0, squares = 0, denominator = 0;
  Weights first;
  for (Index i = 0; i < b; ++i) mean += share(token(i, 0)) / static_cast<double>(b);
  for (Index i = 0; i < b; ++i) {
    squares += std::pow(share(token(i, 0)) - mean, 2);
    first[token(i, 0)] += 1;
  }
  for (const auto& [id, weight] : weights) denominator += share(id);
  for (const auto& [id, drawn] : first) {
    const double times = p.repeats == VattentionParams::Repeats::once ? 1 : drawn;
    denominator += times * share(id) * static_cast<double>(size) / static_cast<double>(b);
  }
  const double z = normal_quantile(1 - p.delta), sigma = std::sqrt(squares / static_cast<double>(b - 1));
  const double needed = std::pow(z * sigma * static_cast<double>(size) / (p.eps * denominator), 2);
  const Index m = std::min(most, std::clamp(static_cast<Index>(std::min(needed, 1e9)), b, size));

  const Weights exact = weights;
  for (Index i = 0; i < m; ++i) {
    const TokenId id = token(i, 1);
    if (exact.contains(id)) continue;
    const double weight = static_cast<double>(size) / static_cast<double>(m);
    if (p.repeats == VattentionParams::Repeats::once)
      weights[id] = weight;
    else
      weights[id] += weight;
  }
  return weights;
}

void check_close(const Weights& got, const Weights& expected) {
  REQUIRE(got.size() == expected.size());
  for (const auto& [id, weight] : expected) {
    REQUIRE(got.contains(id));
    CHECK(got.at(id) == doctest::Approx(weight));
  }
}

}  // namespace

// (2 * 0.5 * 10 / (0.1 * 40))^2 = 6.25; of 5 tokens (2 * 0.5 * 5 / 4)^2 = 1.56, of 100 tokens 625.
TEST_CASE("the samples of vattention follow from the deviation of the first ones") {
  CHECK(vattention_samples(2, 0.5, 40, 0.1, 2, 10) == 6);
  CHECK(vattention_samples(2, 0.5, 40, 0.1, 8, 10) == 8);
  CHECK(vattention_samples(2, 0.5, 40, 0.1, 2, 5) == 2);
  CHECK(vattention_samples(2, 0.5, 40, 0.1, 2, 100) == 100);
  CHECK(vattention_samples(2, 0, 40, 0.1, 3, 100) == 3);
  CHECK(vattention_samples(2, 0.5, 0, 0.1, 3, 100) == 100);
}

// Of a budget of 5 the first and the last token take one each. Without samples the other 3 are the largest logits
// between them, 3 5 6. With heavy = 0.34 only one is, 5, and 2 are for samples of the 6 tokens between them.
TEST_CASE("vattention keeps first, recent and top tokens") {
  const HeadData head = small_head({0, 1, 2, 5, 0, 9, 6, 3, 1}, 8);
  const QueryBlock block = query_block(head, 8, 9, 9, ref());
  const auto cache = open_cache("vattention", {{"base", "0"}}, prompt_of(head, ref()), 5, 0);
  CHECK(answering(*cache, block, head) == Ids{0, 3, 5, 6, 7});
  const auto some = open_cache("vattention", {{"heavy", "0.34"}}, prompt_of(head, ref()), 5, 0);
  const Weights weights = weights_of(visible_entries(head, some->entries(block), block, ref())[0]);
  for (const TokenId exact : {0, 5, 7}) CHECK(weights.at(exact) == 1);
  for (const auto& [id, weight] : weights) CHECK((weight == 1 || weight == 3));
  CHECK(describe(some->notes().at(0)) ==
        "queries of query heads whose samples the budget cut, so that eps and delta do not hold: 1");
  const auto all = open_cache("vattention", {}, prompt_of(head, ref()), 8, 0);
  CHECK(weights_of(visible_entries(head, all->entries(block), block, ref())[0]).size() == 8);
}

// Equal logits have no deviation, so that two samples are enough. They stand for the six tokens between the first and
// the last one, 3 each; with repeats=each a token that is drawn twice has 6, and nothing is lost but draws of token 1,
// the lowest of those that share the largest logit.
TEST_CASE("vattention weighs samples by what they stand for") {
  const HeadData head = small_head(std::vector<float>(9, 1), 8);
  const QueryBlock block = query_block(head, 8, 9, 9, ref());
  bool twice = false, top = false;
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const auto weights = [&](const char* repeats) {
      const auto cache =
          open_cache("vattention", {{"repeats", repeats}, {"heavy", "0.4"}}, prompt_of(head, ref()), 5, seed);
      CHECK(cache->notes().empty());
      return weights_of(visible_entries(head, cache->entries(block), block, ref())[0]);
    };
    const Weights once = weights("once"), each = weights("each");
    CHECK(once.at(0) == 1);
    CHECK(once.at(1) == 1);
    CHECK(once.at(7) == 1);
    double sum = 0;
    for (const auto& [id, weight] : each) sum += weight;
    twice |= each.size() == 4 && sum == 9;
    top |= sum < 9;
    CHECK((sum == 9 || sum == 6 || sum == 3));
    for (const auto& [id, weight] : once) CHECK((weight == 1 || weight == 3));
  }
  CHECK(twice);
  CHECK(top);
}

TEST_CASE("vattention holds what its rule says, in prefill and decode") {
  const HeadData head = random_head({.n = 60, .decoded = 6, .group = 2}, 3, ref());
  const HeadPrompt prompt = prompt_of(head, ref());
  const Draws draws(5, "vattention", prompt);
  for (const char* repeats : {"once", "each"}) {
    VattentionParams params{.sinks = 3, .eps = 0.3, .delta = 0.2};
    params.repeats = std::string(repeats) == "once" ? VattentionParams::Repeats::once : VattentionParams::Repeats::each;
    const auto cache = open_cache(
        "vattention", {{"sinks", "3"}, {"eps", "0.3"}, {"delta", "0.2"}, {"repeats", repeats}}, prompt, 40, 5);
    const auto check = [&](const QueryBlock& block, Index tokens) {
      const auto entries = visible_entries(head, cache->entries(block), block, ref());
      const std::vector<float> scores = ref().read(block.scores);
      for (Index r = 0; r < 2 * block.size(); ++r) {
        const Index position = block.positions[static_cast<std::size_t>(r % block.size())];
        const auto own = scores.begin() + r * block.scores.cols();
        const std::vector<float> logits(own, own + std::min(position + 1, tokens));
        check_close(weights_of(entries[static_cast<std::size_t>(r)]),
                    rule(logits, params, 40, draws, position * 2 + r / block.size()));
      }
    };
    check(query_block(head, 60, 66, 66, ref()), 60);
    CHECK(append(*cache, token_block(head, 60, 66, ref())) == 6);
    check(query_block(head, 60, 66, 66, ref()), 66);
  }
}

// k takes what first and recent tokens leave, 3 of 5; all 6 tokens between them are drawn where eps is small.
TEST_CASE("the samples of vattention may lie beyond the budget") {
  const HeadData head = small_head({0, 1, 2, 5, 0, 9, 6, 3, 1}, 8);
  const QueryBlock block = query_block(head, 8, 9, 9, ref());
  std::size_t most = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const auto cache =
        open_cache("vattention", {{"samples", "beyond"}, {"eps", "1e-6"}}, prompt_of(head, ref()), 5, seed);
    const Weights weights = weights_of(visible_entries(head, cache->entries(block), block, ref())[0]);
    for (const TokenId exact : {0, 3, 5, 6, 7}) CHECK(weights.at(exact) == 1);
    most = std::max(most, weights.size());
  }
  CHECK(most > 6);
}
