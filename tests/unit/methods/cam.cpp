// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <map>

#include <support/steps.hpp>

#include <kvbench/methods/merging/cam.hpp>
#include <kvbench/methods/stages/draws.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Settings = std::vector<Assignment>;
constexpr float tiny = 1e-30f;

/// Values by token: the value of the entry, or the token's value 2^id.
std::map<TokenId, double> values(const Step& step, std::size_t g = 0) {
  std::map<TokenId, double> held;
  for (const Entry& entry : step.entries[g]) {
    CHECK(entry.key.empty());
    CHECK(entry.num == 1);
    CHECK(entry.den == 1);
    held[entry.id] = entry.value.empty() ? std::ldexp(1.0, entry.id) : double{entry.value[0]};
  }
  return held;
}
using Held = std::map<TokenId, double>;

/// Whether the draw of token i of query head g merges it at this probability.
bool merges(const HeadPrompt& head, std::uint32_t seed, Index i, double chance, std::uint32_t g = 0) {
  return Draws(seed, "cam", head).uniform(i, g) < chance;
}

std::unique_ptr<CompressedCache> open_cam(const HeadData& head, Settings settings, Index budget,
                                          std::uint32_t seed = 0) {
  settings.insert(settings.begin(), {"start", "1"});
  return open_cache("cam", std::move(settings), prompt_of(head, ref()), budget, seed);
}

}  // namespace

// All weights 1, start 1, window 2, m = 2. Sums of attention, by query: after 2 (all three tokens seen) 1.833 .833
// .333; query 3 reads 0 1 2 3, a quarter each, then token 1 leaves: 1.083 against the mean .417 of .583 and .25, so
// surely merged: 4 + 1, 8
// + 1. Query 4 reads 0 2 3 4, token 2 leaves: .833 against .375; 9 + 2.5, 16 + 2.5. Query 5 reads 0 3 4 5, token 3
//   leaves: .75
// against .375; 18.5 + 5.75, 32 + 5.75. Query 6 reads 0 4 5 6.
TEST_CASE(
    "cam streaming merges a value that leaves the window into the next values, with the shares that it has received") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0, 0}, 5);
  const auto cache = open_cam(head, {{"merge", "2"}}, 3);
  CHECK(values(ask(*cache, head)) == Held{{0, 1}, {3, 11.5}, {4, 18.5}});
  CHECK(values(decode_step(*cache, head, 5)) == Held{{0, 1}, {3, 11.5}, {4, 18.5}, {5, 32}});
  CHECK(values(decode_step(*cache, head, 6)) == Held{{0, 1}, {4, 24.25}, {5, 37.75}, {6, 64}});

  HeadData empty = head;
  empty.n = 0;
  const auto streamed = open_cam(empty, {{"merge", "2"}}, 3);
  for (Index t = 0; t < 5; ++t) decode_step(*streamed, empty, t);
  CHECK(values(decode_step(*streamed, empty, 5)) == Held{{0, 1}, {3, 11.5}, {4, 18.5}, {5, 32}});
  CHECK(values(decode_step(*streamed, empty, 6)) == Held{{0, 1}, {4, 24.25}, {5, 37.75}, {6, 64}});
}

// The window of 2 holds fewer than m = 4 tokens: each of them gets v / 4, and the other half of v is lost.
TEST_CASE("cam divides by m where fewer than m values receive a share") {
  const HeadData head = small_head({0, 0, 0, 0, 0}, 4);
  CHECK(values(ask(*open_cam(head, {{"merge", "4"}}, 3), head)) == Held{{0, 1}, {2, 4.5}, {3, 8.5}});
  CHECK(values(ask(*open_cam(head, {}, 3), head)) == Held{{0, 1}, {2, 4.125}, {3, 8.125}});  // m = 16
}

// Token 2 receives almost no attention: it is dropped unmerged, and with it the half of token 1 that it received.
TEST_CASE("cam drops a value that received no attention") {
  const HeadData head = small_head(logs({1, 1, tiny, 1, 1, 1}), 5);
  CHECK(values(ask(*open_cam(head, {{"merge", "2"}}, 3), head)) == Held{{0, 1}, {3, 9}, {4, 16}});
}

// Weights tiny 1 8 1 1. Before query 3: A = 1, 1 + 1/9, 8/9: token 1 is the largest of start and window, surely merged:
// 4 + 1, 8 + 1. Query 3 still reads it: A = 1, 1.211, 1.689, .1. Before query 4 token 2 is the largest: 9 + 2.5, 16 +
// 2.5.
TEST_CASE("cam eval merges by the largest sum of start and window, before the query that still reads the token") {
  const HeadData head = small_head(logs({tiny, 1, 8, 1, 1, 1}), 5);
  const Held after = {{0, 1}, {3, 11.5}, {4, 18.5}};
  CHECK(values(ask(*open_cam(head, {{"form", "eval"}}, 3), head)) == after);  // m = window = 2

  HeadData empty = head;
  empty.n = 0;
  const auto streamed = open_cam(empty, {{"form", "eval"}}, 3);
  for (Index t = 0; t < 3; ++t) decode_step(*streamed, empty, t);
  CHECK(values(decode_step(*streamed, empty, 3)) == Held{{0, 1}, {1, 2}, {2, 5}, {3, 9}});
  CHECK(values(decode_step(*streamed, empty, 4)) == Held{{0, 1}, {2, 5}, {3, 11.5}, {4, 18.5}});
}

// Weights 1: before query 3 A = 1.833 .833 .333, so eval merges token 1 with .833 / 1.833 (without the start tokens:
// surely). There is one draw per token and head.
TEST_CASE("cam merges with the probability of the form, with one draw per token and head") {
  const HeadData head = small_head({0, 0, 0, 0, 0}, 4, 2);
  const HeadPrompt prompt = prompt_of(head, ref());
  const double chance = (1.0 / 2 + 1.0 / 3) / (1 + 1.0 / 2 + 1.0 / 3);
  Index merged = 0, differ = 0;
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const Step step = ask(*open_cache("cam", {{"start", "1"}, {"form", "eval"}}, prompt, 3, seed), head);
    bool happened[2];
    for (const std::uint32_t g : {0u, 1u}) {
      happened[g] = values(step, g).at(2) != 4;
      CHECK(happened[g] == merges(prompt, seed, 1, chance, g));
      merged += happened[g];
    }
    differ += happened[0] != happened[1];
  }
  // 800 draws of probability .4545: 364 expected, deviation 14; 400 pairs differ with 2 p (1 - p) = .496.
  CHECK(std::abs(merged - 364) < 56);
  CHECK(std::abs(differ - 198) < 40);

  // The kv head selects: one draw, the same values for both query heads.
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    const auto cache = open_cache("cam", {{"start", "1"}, {"form", "eval"}, {"per", "kv_head"}}, prompt, 3, seed);
    const Step step = ask(*cache, head);
    CHECK(values(step, 0) == values(step, 1));
    CHECK((values(step, 0).at(2) != 4) == merges(prompt, seed, 1, chance));
  }
}

// Start 1, window 4, m = 2, weights 1. The context keeps 2 3 4 5 of its window, 1 is dropped unmerged. Query 6 reads 3
// 4 5 6; afterwards token 4 (6 - 4 + 2) is merged: 32 + 8, 64 + 8. Query 7 reads it once more, then 5 goes: 72 + 20,
// 128 + 20. Query 8 has lost 4; token 3 left at query 7 and was never merged.
TEST_CASE("cam decode merges a token one step before it leaves, and no token that the prompt drops") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0, 0, 0, 0}, 6);
  const auto cache = open_cam(head, {{"form", "decode"}, {"merge", "2"}}, 5);
  CHECK(values(ask(*cache, head)) == Held{{0, 1}, {2, 4}, {3, 8}, {4, 16}, {5, 32}});
  CHECK(values(decode_step(*cache, head, 6)) == Held{{0, 1}, {3, 8}, {4, 16}, {5, 32}, {6, 64}});
  CHECK(values(decode_step(*cache, head, 7)) == Held{{0, 1}, {4, 16}, {5, 40}, {6, 72}, {7, 128}});
  CHECK(values(decode_step(*cache, head, 8)) == Held{{0, 1}, {5, 40}, {6, 92}, {7, 148}, {8, 256}});
}

// The same, but query 6 gives token 4 almost no attention, unlike queries 4 and 5 (which are 0 and attend to all keys
// alike).
TEST_CASE("cam decode uses the attention of the current step only") {
  HeadData head = small_head(logs({1, 1, 1, 1, tiny, 1, 1, 1}), 6);
  for (std::size_t t = 0; t < 6; ++t) head.queries[t] = 0;
  const auto cache = open_cam(head, {{"form", "decode"}, {"merge", "2"}}, 5);
  decode_step(*cache, head, 6);
  CHECK(values(decode_step(*cache, head, 7)) == Held{{0, 1}, {4, 16}, {5, 32}, {6, 64}, {7, 128}});
}

// In a window of 2 there is no token after the merged one to compare with (an empty mean): never merged. The same for
// 1.
TEST_CASE("cam decode does not merge where the window is too short") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0}, 3);
  for (const Index budget : {2, 3}) {
    const auto cache = open_cam(head, {{"form", "decode"}}, budget);
    for (Index t = 3; t < 6; ++t) {
      for (const auto& [id, value] : values(decode_step(*cache, head, t))) CHECK(value == std::ldexp(1.0, id));
    }
  }
}

// Sums 5 1 4 2 4, start 1, window 2: token 1 against the mean 3 of 4 and 2, token 2 against 3 of 2 and 4: surely
// merged.
TEST_CASE("cam replaces the sums at each time by column sums where the trace lacks queries, and reports it") {
  const HeadData head = small_head({0, 0, 0, 0, 0, 0}, 5);
  HeadPrompt prompt = prompt_of(head, ref());
  prompt.column_sums = ref().adopt(std::vector<float>{5, 1, 4, 2, 4}, 1, 5);
  prompt.observed = prompt.observed.slice(1, 4);
  prompt.observed_positions = {1, 2, 3, 4};
  for (const char* how : {"auto", "columns"}) {
    for (std::uint32_t seed = 0; seed < 30; ++seed) {
      const auto cache = open_cache("cam", {{"start", "1"}, {"merge", "2"}, {"prompt", how}}, prompt, 3, seed);
      const bool first = merges(prompt, seed, 1, 1.0 / 3);
      CHECK(values(ask(*cache, head)) ==
            (first ? Held{{0, 1}, {3, 9 + 2.5}, {4, 16 + 2.5}} : Held{{0, 1}, {3, 8 + 2}, {4, 16 + 2}}));
      CHECK(cache->notes().size() == (std::string(how) == "auto" ? 1 : 0));
    }
  }
  CHECK(open_cam(head, {}, 3)->notes().empty());
}
