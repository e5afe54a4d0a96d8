// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>
#include <set>

#include <support/steps.hpp>

#include <kvbench/methods/eviction/h2o.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Settings = std::vector<Assignment>;

HeadPrompt with_sums(HeadPrompt prompt, std::vector<float> sums) {
  const Index n = prompt.tokens();
  prompt.column_sums = ref().adopt(std::move(sums), prompt.group, n);
  return prompt;
}

/// The tokens that query head g keeps of a context with these column sums.
Ids kept(const HeadData& head, const std::vector<float>& sums, Settings settings, Index budget, std::size_t g = 0) {
  const HeadPrompt prompt = with_sums(prompt_of(head, ref()), sums);
  return ask(*open_cache("h2o", std::move(settings), prompt, budget, 0), head).ids(g);
}

}  // namespace

TEST_CASE("h2o keeps half of the budget by column sums before the recent window, and the window") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0, 0}, 6);
  const std::vector<float> sums = {9, 1, 5, 3, 4, 20};
  CHECK(kept(head, sums, {}, 2) == Ids{0, 5});
  CHECK(kept(head, sums, {}, 3) == Ids{0, 4, 5});  // heavy = floor(3/2) = 1, recent = 2
  CHECK(kept(head, sums, {}, 4) == Ids{0, 2, 4, 5});
  CHECK(kept(head, sums, {}, 5) == Ids{0, 2, 3, 4, 5});
  CHECK(kept(head, sums, {}, 1) == Ids{5});
  CHECK(kept(head, sums, {}, 6) == Ids{0, 1, 2, 3, 4, 5});
  CHECK(kept(head, sums, {}, 60) == Ids{0, 1, 2, 3, 4, 5});
  CHECK(kept(head, sums, {{"heavy", "1"}}, 2) == Ids{0, 5});  // no window: 20 is an ordinary column
  CHECK(kept(head, sums, {{"heavy", "1"}}, 3) == Ids{0, 2, 5});
  CHECK(kept(head, sums, {{"heavy", "0"}}, 3) == Ids{3, 4, 5});
  CHECK(kept(head, sums, {{"heavy", "0.6"}}, 5) == Ids{0, 2, 3, 4, 5});
}

TEST_CASE("h2o: of equal scores in the prompt the oldest token is evicted") {
  const HeadData head = small_head({0, 0, 0, 0, 0}, 4);
  CHECK(kept(head, {1, 1, 1, 9}, {}, 2) == Ids{2, 3});
}

// Head 0 has 4 0 3, head 1 has 0 5 3 before the window: mean and sum choose token 2, the maximum token 1.
TEST_CASE("h2o selects per kv head by the mean, maximum or sum of the scores, or per query head") {
  const HeadData head = small_head({0, 0, 0, 0, 0}, 4, 2);
  const std::vector<float> sums = {4, 0, 3, 1, 0, 5, 3, 1};
  CHECK(kept(head, sums, {{"per", "query_head"}}, 2, 0) == Ids{0, 3});
  CHECK(kept(head, sums, {{"per", "query_head"}}, 2, 1) == Ids{1, 3});
  const auto shared = [&](const char* reduce, std::size_t g) { return kept(head, sums, {{"reduce", reduce}}, 2, g); };
  for (const std::size_t g : {0, 1}) {
    CHECK(shared("mean", g) == Ids{2, 3});
    CHECK(shared("sum", g) == Ids{2, 3});
    CHECK(shared("max", g) == Ids{1, 3});
  }
}

// Keys equal: every step attends evenly. Sums 5 3 3 1, budget 4 = 2 heavy + 2 recent, nothing is cut before decoding.
// Step 4 reads 0 .. 4, a fifth each: 1 and 2 have 3.2 both, the older is evicted. Step 5: 5.4 3.4 1.4 | .4 .2, token 3
// is evicted. Step 6: 5.6 3.6 .6 | .4 .2: token 4 started with its own attention, not with an average of others, and is
// evicted.
TEST_CASE("h2o reads B + 1 tokens per step and evicts one afterwards, ties to the oldest") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0, 0, 0}, 4);
  const HeadPrompt prompt = with_sums(prompt_of(head, ref()), {5, 3, 3, 1});
  const auto cache = open_cache("h2o", {}, prompt, 4, 0);
  CHECK(decode_step(*cache, head, 4).ids() == Ids{0, 1, 2, 3, 4});
  CHECK(decode_step(*cache, head, 5).ids() == Ids{0, 2, 3, 4, 5});
  CHECK(decode_step(*cache, head, 6).ids() == Ids{0, 2, 4, 5, 6});
  CHECK(decode_step(*cache, head, 7).ids() == Ids{0, 2, 5, 6, 7});
}

// Weights 1 1 | 98, budget 2: step 2 gives token 2 .98 as its first score; token 1 (.5 + .01) is evicted at that step.
// At step 3 (weight 1) token 0 has 1.5 + .01 + .01, token 2 .98 + .98: token 0 is evicted, which a first score of zero
// would keep.
TEST_CASE("h2o: the first score of a new token is the attention of its own query") {
  const HeadData head = small_head(logs({1, 1, 98, 1, 1}), 2);
  const auto cache = open_cache("h2o", {}, prompt_of(head, ref()), 2, 0);
  CHECK(decode_step(*cache, head, 2).ids() == Ids{0, 1, 2});
  CHECK(decode_step(*cache, head, 3).ids() == Ids{0, 2, 3});
  CHECK(decode_step(*cache, head, 4).ids() == Ids{2, 3, 4});
}

// Queries 0 0 0 1 1 over weights 1 8 1 1 1. Columns: token 0 has 1 + 1/2 + 1/3 + 1/11 + 1/12 = 2.01, token 1 1/2 + 1/3
// + 8/11 + 8/12 = 2.23. The stream with budget 2 has lost token 1 by then: after query 2 it had 1/2 + 1/3 against 1 +
// 1/2 + 1/3.
TEST_CASE("h2o: the stream evicts a token that the columns of the full map would keep") {
  HeadData head = small_head(logs({1, 8, 1, 1, 1, 1}), 5);
  for (const std::size_t t : {0, 1, 2}) head.queries[t] = 0;
  const HeadPrompt prompt = prompt_of(head, ref());
  const auto with = [&](const char* how) {
    return ask(*open_cache("h2o", {{"prompt", how}}, prompt, 2, 0), head).ids();
  };
  CHECK(with("columns") == Ids{1, 4});
  CHECK(with("stream") == Ids{0, 4});
}

namespace {

/// A literal transcription of Algorithm 1: a set and a map of scores, one token at a time. Returns the tokens that each
/// query t of head g reads.
std::vector<std::set<Index>> literal_h2o(const HeadData& head, Index g, Index heavy, Index recent) {
  std::vector<std::set<Index>> read;
  std::set<Index> held;
  std::map<Index, double> score;
  for (Index t = 0; t < head.total; ++t) {
    held.insert(t);
    read.push_back(held);
    std::map<Index, double> mass;
    double sum = 0;
    for (const Index j : held) {
      double dot = 0;
      for (Index c = 0; c < head.d; ++c) {
        dot += double{head.queries[static_cast<std::size_t>((g * head.total + t) * head.d + c)]} *
               head.keys[static_cast<std::size_t>(j * head.d + c)];
      }
      sum += mass[j] = std::exp(head.scale * dot);
    }
    for (const Index j : held) score[j] += mass[j] / sum;
    if (static_cast<Index>(held.size()) <= heavy + recent) continue;
    Index least = -1;
    for (const Index j : held) {
      if (j > t - recent) continue;  // the recent window
      if (least < 0 || score[j] < score[least]) least = j;
    }
    held.erase(least);
  }
  return read;
}

Ids as_ids(const std::set<Index>& set) { return {set.begin(), set.end()}; }

}  // namespace

TEST_CASE("h2o equals the greedy algorithm of the paper, over the prompt and while decoding") {
  for (const auto& backend : {make_ref_backend(), make_cpu_backend()}) {
    HeadData head = random_head({}, 3, *backend);
    for (float& x : head.queries) x *= 4;  // sharp enough that later tokens overtake the first ones
    HeadData empty = head;
    empty.n = 0;
    for (const Index budget : {1, 2, 9, 16, 31}) {
      CAPTURE(budget);
      const Settings per_head = {{"per", "query_head"}}, from_start = {{"per", "query_head"}, {"prompt", "stream"}};
      const auto prompted = open_cache("h2o", from_start, prompt_of(head, *backend), budget, 0, *backend);
      const auto streamed = open_cache("h2o", per_head, prompt_of(empty, *backend), budget, 0, *backend);
      std::vector<std::vector<std::set<Index>>> expected;
      for (Index g = 0; g < head.group; ++g) expected.push_back(literal_h2o(head, g, budget / 2, budget - budget / 2));
      for (Index t = 0; t < head.total; ++t) {
        CAPTURE(t);
        const Step all = decode_step(*streamed, empty, t, *backend);
        const Step tail = t < head.n ? all : decode_step(*prompted, head, t, *backend);
        for (std::size_t g = 0; g < 3; ++g) {
          CHECK(all.ids(g) == as_ids(expected[g][static_cast<std::size_t>(t)]));
          CHECK(tail.ids(g) == as_ids(expected[g][static_cast<std::size_t>(t)]));
        }
      }
    }
  }
}

TEST_CASE("h2o: no query affects the tokens that answer it, in decode either") {
  HeadData head = random_head({.n = 4, .decoded = 30}, 4, ref());
  for (float& x : head.queries) x *= 4;  // sharp enough that later tokens overtake the first ones
  HeadData altered = head;
  for (Index g = 0; g < head.group; ++g) {
    const auto rows = altered.queries.begin() + g * head.total * head.d;
    std::for_each(rows + 14 * head.d, rows + head.total * head.d, [](float& x) { x *= -3; });
  }
  const auto run = [&](const HeadData& data) {
    const auto cache = open_cache("h2o", {{"per", "query_head"}}, prompt_of(data, ref()), 8, 0);
    std::vector<Ids> ids;
    for (Index t = 4; t < 34; ++t) ids.push_back(decode_step(*cache, data, t).ids());
    return ids;
  };
  const auto before = run(head), after = run(altered);
  for (std::size_t step = 0; step <= 10; ++step) CHECK(before[step] == after[step]);  // up to position 14 itself
  CHECK(before != after);  // its attention counts from then on
}

// Three query heads, d 8, dv 6.
TEST_CASE("h2o counts the token that a step adds, and every stored copy of a score") {
  const HeadData head = random_head({}, 5, ref());
  const auto rows = [&](Settings settings, Index budget, bool step) {
    const auto cache = open_cache("h2o", std::move(settings), prompt_of(head, ref()), budget, 0);
    if (step) decode_step(*cache, head, 48);
    const Footprint arrays = cache->footprint();
    REQUIRE(arrays.size() == 3);
    CHECK(arrays[0].cols == 8);
    CHECK(arrays[1].cols == 6);
    CHECK(arrays[0].rows == arrays[1].rows);
    CHECK(arrays[2].cols == 1);
    CHECK(arrays[2].meta());
    return std::pair(arrays[0].rows, arrays[2].rows);
  };
  CHECK(rows({}, 10, false) == std::pair<Index, Index>(10, 10));
  CHECK(rows({}, 10, true) == std::pair<Index, Index>(11, 11));
  CHECK(rows({}, 100, true) == std::pair<Index, Index>(49, 49));
  CHECK(rows({{"reduce", "max"}}, 10, true) == std::pair<Index, Index>(11, 3 * 11));
  CHECK(rows({{"per", "query_head"}}, 10, true) == std::pair<Index, Index>(3 * 11, 3 * 11));
  const auto cache = open_cache("h2o", {}, prompt_of(head, ref()), 9, 0);
  CHECK(cache->protected_tokens().recent == 5);
  CHECK(cache->protected_tokens().sinks == 0);
  CHECK_FALSE(cache->protected_tokens().decoded);
}

TEST_CASE("a share of the budget is rounded down, with a tolerance for rounding errors") {
  CHECK(heavy_tokens(0.5, 7) == 3);
  CHECK(heavy_tokens(0.1, 30) == 3);
  CHECK(heavy_tokens(0.29, 100) == 29);
  CHECK(heavy_tokens(1, 5) == 5);
  CHECK(heavy_tokens(0, 5) == 0);
}
