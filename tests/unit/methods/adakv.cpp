// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numeric>

#include <doctest/doctest.h>

#include <kvbench/methods/compose.hpp>
#include <kvbench/methods/eviction/given_scores.hpp>
#include <kvbench/methods/stages/competition.hpp>
#include <kvbench/methods/stages/score_only.hpp>

#include <support/scored_layer.hpp>
#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

const Wrapper& wrapper(std::string_view name) {
  for (const Wrapper& one : all_wrappers()) {
    if (one.info.name == name) return one;
  }
  throw Error("no wrapper {}", name);
}

/// Tokens that the heads of a layer with these scores keep.
std::vector<Ids> kept(const char* name, std::vector<std::vector<float>> scores, Index budget,
                      std::vector<Assignment> settings) {
  const ScoredLayer layer(std::move(scores));
  return layer.kept(wrap(wrapper(name), layer.method()), std::move(settings), budget);
}

std::string refusal(const char* name) {
  try {
    find_method(name);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const std::vector<std::vector<float>> two_heads = {{9, 8, 7, 6, 1, 0}, {5, 4, 3, 2, 0.5, 0.4f}};

}  // namespace

// The best 6 of both heads are 9 8 7 6 5 4: 4 of head 0, 2 of head 1.
TEST_CASE("adakv blends the shares that scores win with equal ones, and the sum is the budget") {
  const std::vector<Ids> unequal = {{0, 1, 2, 3}, {0, 1}}, equal = {{0, 1, 2}, {0, 1, 2}};
  CHECK(kept("adakv", two_heads, 3, {}) == unequal);                  // 0.8 * (4, 2) + 0.6 = (3.8, 2.2)
  CHECK(kept("adakv", two_heads, 3, {{"alpha", "0"}}) == unequal);    // (4, 2)
  CHECK(kept("adakv", two_heads, 3, {{"alpha", "0.5"}}) == unequal);  // (3.5, 2.5): 6 is better than 3
  CHECK(kept("adakv", two_heads, 3, {{"alpha", "1"}}) == equal);
  CHECK(kept("adakv", two_heads, 3, {{"alpha", "0.9"}}) == equal);  // (3.1, 2.9)
  CHECK(kept("adakv", two_heads, 6, {}) == std::vector<Ids>{{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}});
  CHECK(kept("adakv", two_heads, 9, {}) == std::vector<Ids>{{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}});
}

// Tokens 0 and 5 of both heads are kept; 8 7 6 4 are the best 4 of tokens 1 .. 4: 0.8 * (3, 1) + 0.4 = (2.8, 1.2).
TEST_CASE("what the method of adakv always keeps is kept in every head, in addition to its share") {
  const std::vector<Assignment> ends = {{"sinks", "1"}, {"recent", "1"}};
  for (const char* name : {"adakv", "adakv@kvpress"}) {
    CHECK(kept(name, two_heads, 4, ends) == std::vector<Ids>{{0, 1, 2, 3, 5}, {0, 1, 5}});
    CHECK(kept(name, two_heads, 2, ends) == std::vector<Ids>{{0, 5}, {0, 5}});
    CHECK(kept(name, two_heads, 1, ends) == std::vector<Ids>{{5}, {5}});
  }
}

// The best 4 of both heads are all of head 0.
TEST_CASE("adakv@kvpress guarantees each head its best tokens, and drops the lowest scores of the layer") {
  CHECK(kept("adakv@kvpress", two_heads, 2, {}) == std::vector<Ids>{{0, 1, 2}, {0}});  // int(0.4), at least 1
  CHECK(kept("adakv@kvpress", two_heads, 2, {{"alpha", "0"}}) == std::vector<Ids>{{0, 1, 2, 3}, {}});
  CHECK(kept("adakv@kvpress", two_heads, 2, {{"alpha", "0.5"}}) == std::vector<Ids>{{0, 1, 2}, {0}});        // int(1)
  CHECK(kept("adakv@kvpress", two_heads, 2, {{"alpha", "1"}}) == std::vector<Ids>{{0, 1}, {0, 1}});          // int(2)
  CHECK(kept("adakv@kvpress", two_heads, 3, {{"alpha", "0.9"}}) == std::vector<Ids>{{0, 1, 2, 3}, {0, 1}});  // int(2.7)
  // The two tokens at the ends count as safe ones: int(0.5 * 4) = 2, none in addition.
  CHECK(kept("adakv@kvpress", {{9, 8, 7, 6, 1, 0}, {5, 0, 0, 0, 0, 0}}, 4,
             {{"sinks", "1"}, {"recent", "1"}, {"alpha", "0.5"}}) == std::vector<Ids>{{0, 1, 2, 3, 4, 5}, {0, 5}});
}

// Of 16 tokens the first and the last are kept; head 0 has the better scores. A budget of 8 is 12 of the others for
// both heads together. int(0.5 * 8) = 4 are safe, two of which are those that are kept anyway: 10 and 2. Were the share
// of 6 taken, 3 - 2 or 3; were those that are kept not among them, 4.
TEST_CASE("the safe part of adakv@kvpress is a share of the whole budget, with the tokens that are always kept") {
  std::vector<std::vector<float>> scores(2, std::vector<float>(16));
  for (std::size_t t = 0; t < 16; ++t)
    scores[0][t] = static_cast<float>(100 - t), scores[1][t] = static_cast<float>(50 - t);
  const auto tokens = [&](Index budget, const char* alpha) {
    std::vector<Index> counts;
    for (const Ids& ids : kept("adakv@kvpress", scores, budget, {{"sinks", "1"}, {"recent", "1"}, {"alpha", alpha}}))
      counts.push_back(std::ssize(ids));
    return counts;
  };
  CHECK(tokens(8, "0.5") == std::vector<Index>{2 + 10, 2 + 2});
  CHECK(tokens(8, "0.4") == std::vector<Index>{2 + 11, 2 + 1});  // int(3.2) - 2
  CHECK(tokens(8, "0.2") == std::vector<Index>{2 + 12, 2 + 0});  // int(1.6) - 2: none beyond those
  CHECK(tokens(8, "1") == std::vector<Index>{2 + 6, 2 + 6});
  std::vector<std::vector<float>> many(2, std::vector<float>(200, 1));
  many[1].assign(200, 0);
  // In fp64 0.29 * 100 is below 29, and Python's int() cuts it to 28.
  CHECK(kept("adakv@kvpress", many, 100, {{"alpha", "0.29"}})[1].size() == 28);
}

// (1 - alpha) c + int(alpha b), rounded to nearest, ties to even, as the released code has it.
TEST_CASE("adakv has the released shares where alpha b is whole and their sum is the budget") {
  int same = 0;
  for (std::uint32_t stream = 0; stream < 40; ++stream) {
    std::vector<std::vector<float>> scores;
    for (std::uint32_t h = 0; h < 4; ++h) scores.push_back(random_numbers(30, stream, h));
    for (float& score : scores[0]) score *= 3;
    for (const Index b : {5, 10, 13, 20, 27}) {
      std::vector<std::pair<float, std::size_t>> all;
      for (std::size_t h = 0; h < scores.size(); ++h) {
        for (const float score : scores[h]) all.emplace_back(-score, h);
      }
      std::ranges::sort(all);
      std::vector<Index> released(4, 0), own;
      for (Index i = 0; i < 4 * b; ++i) ++released[all[static_cast<std::size_t>(i)].second];
      for (Index& c : released)
        c = std::llrint(std::nearbyint(0.8 * static_cast<double>(c) + std::floor(0.2 * static_cast<double>(b))));
      for (const Ids& ids : kept("adakv", scores, b, {})) own.push_back(std::ssize(ids));
      CHECK(std::accumulate(own.begin(), own.end(), Index{0}) == 4 * b);
      for (std::size_t h = 0; h < own.size(); ++h) CHECK(std::abs(own[h] - released[h]) <= 2);
      if (b % 5 != 0 || std::accumulate(released.begin(), released.end(), Index{0}) != 4 * b) continue;
      CHECK(own == released);
      ++same;
    }
  }
  CHECK(same > 40);
}

TEST_CASE("the heads of a layer that compete hold what they keep, and a length where they differ") {
  const ScoredLayer layer(two_heads);
  const auto footprints = [&](const char* name, Index budget) {
    return layer.open(wrap(wrapper(name), layer.method()), {}, budget)->footprint();
  };
  for (const char* name : {"adakv", "adakv@kvpress"}) {
    const auto ragged = footprints(name, 3);
    CHECK(ragged[0][0].rows == 4);
    CHECK(ragged[1][0].rows == 2);
    CHECK(ragged[0].back().name == "length");
    CHECK(footprints(name, 6)[0].size() == 2);  // keys and values: every head keeps all tokens
  }
}

TEST_CASE("ties go to the lower head and the lower token, and NaN-free scores of any sign are ranked") {
  CHECK(kept("adakv", {{1, 1, 1}, {1, 1, 1}}, 1, {{"alpha", "0"}}) == std::vector<Ids>{{0, 1}, {}});
  CHECK(kept("adakv", {{-3, -1, -2}, {-4, -5, 0}}, 1, {{"alpha", "0"}}) == std::vector<Ids>{{1}, {2}});
}

TEST_CASE("a competition knows how many tokens each competitor wins, and where its next one lies") {
  const Competition two({{3, 1, 2}, {5, 0}});
  CHECK(two.won(0) == std::vector<Index>{0, 0});
  CHECK(two.won(2) == std::vector<Index>{1, 1});
  CHECK(two.won(4) == std::vector<Index>{3, 1});
  CHECK(two.won(4, 2) == std::vector<Index>{2, 2});
  CHECK(two.won(5, 9) == std::vector<Index>{3, 2});
  CHECK(two.place(0, 0) == 1);
  CHECK(two.place(1, 1) == 4);
  CHECK(two.place(1, 2) == 5);
  CHECK(rounded_shares({1.5, 0.5}, two) == std::vector<Index>{1, 1});  // 5 is better than 2
  CHECK(rounded_shares({1.5, 1.5}, two) == std::vector<Index>{2, 1});  // 2 is better than 0
  CHECK(rounded_shares({0.4, 1.6}, two) == std::vector<Index>{0, 2});
}

TEST_CASE("a wrapper has the parameters of both, is found once, and is stored by quantisers") {
  const MethodInfo& both = find_method("adakv(snapkv)");
  CHECK(&both == &find_method("AdaKV( SnapKV )"));
  CHECK(both.name == "adakv(snapkv)");
  CHECK(both.granularity == Granularity::layer);
  CHECK(both.bind(std::vector<Assignment>{{"alpha", "0.3"}, {"window", "16"}}).text() == "window=16;alpha=0.3");
  CHECK(both.bind(std::vector<Assignment>{{"adakv.alpha", "0.3"}}).text() == "alpha=0.3");
  CHECK(both.bind({}).text().empty());
  const MethodInfo& stored = find_method("adakv(snapkv)+int8");
  CHECK(stored.name == "adakv(snapkv)+int8");
  CHECK(stored.bind(std::vector<Assignment>{{"window", "16"}, {"alpha", "0"}, {"int8.group", "4"}}).text() ==
        "window=16;alpha=0;int8.group=4");
  CHECK(find_method("adakv(pyramidkv)").plan != nullptr);
  CHECK(find_method("adakv@kvpress(snapkv@kvpress)").name == "adakv@kvpress(snapkv@kvpress)");
  CHECK(family_of("adakv(snapkv)") == "eviction");
  CHECK(family_of("adakv(snapkv)+int8") == "composition");
  CHECK(family_of("adakv(mine.py:Mine)") == "own");
}

TEST_CASE("wrappers that make no sense are refused with a true sentence") {
  const struct {
    const char *name, *sentence;
  } cases[] = {{"adakv", "write adakv(snapkv)"},
               {"AdaKVPress", "write adakv(snapkv)"},
               {"adakv()", "write adakv(snapkv)"},
               {"adakv( )", "write adakv(snapkv)"},
               {"adakv(kmeans)", "kmeans does not rank tokens by scores"},
               {"adakv(exact)", "exact does not rank tokens by scores"},
               {"adakv(int8)", "int8 does not rank tokens by scores"},
               {"adakv(adakv(snapkv))", "adakv(snapkv) chooses tokens already"},
               {"adakv(snapkv+int8)", "write adakv(snapkv)+int8"},
               {"adakv(snapkv", "a bracket that is not closed"},
               {"adakv(snapkv)x", "nothing follows the bracket"},
               {"adakv(snapvk)", "snapkv"},
               {"adakv(plan:p.toml)", "a plan stands for a whole method"},
               {"adakv(scores:s.h5)", "has the scores of a trace"},
               {"adokv(snapkv)", "no wrapper 'adokv'; there are adakv, adakv@kvpress, criticalkv"},
               {"adakv(snapkv)+", "no composition"},
               {"adakv(snapkv)+h2o", "'h2o' does not"}};
  for (const auto& [name, sentence] : cases) {
    CAPTURE(name);
    CHECK_THROWS_WITH_AS(find_method(name), doctest::Contains(sentence), Error);
  }
  CHECK_THROWS_WITH_AS(find_method("adakv(snapkv)").bind(std::vector<Assignment>{{"per", "query_head"}}),
                       doctest::Contains("set per=kv_head"), Error);
  CHECK(refusal("adakv(kmeans)").find("adakv wraps snapkv") != std::string::npos);
}

TEST_CASE("a score per query head, and heads with scores of other tokens, are no competition") {
  std::vector<HeadPrompt> heads;
  for (std::uint32_t h = 0; h < 2; ++h) {
    heads.push_back(prompt_of(random_head({}, h, ref()), ref()));
    heads.back().num_kv_heads = 2;
  }
  const auto reason = [&](std::vector<Index> rows, std::vector<Index> columns) -> std::string {
    const auto score = [&](std::span<const HeadPrompt> of, const Params&, Backend&) {
      std::vector<TokenScores> out;
      for (std::size_t h = 0; h < of.size(); ++h) {
        const auto all =
            ref().adopt(std::vector<float>(static_cast<std::size_t>(rows[h] * columns[h]), 1), rows[h], columns[h]);
        out.push_back({all, 0, of[h].tokens() - columns[h]});
      }
      return out;
    };
    MethodInfo info = with_scores(with_schema<NoParams>({.name = "rows"}), score);
    info = wrap(wrapper("adakv"), info);
    try {
      info.prepare(heads, info.bind({}), ref());
    } catch (const Unavailable& error) {
      return error.what();
    }
    return "";
  };
  CHECK(reason({1, 1}, {48, 48}).empty());
  CHECK(reason({3, 3}, {48, 48}).find("set per=kv_head") != std::string::npos);
  CHECK(reason({1, 1}, {48, 40}).find("different numbers of last tokens") != std::string::npos);
}

TEST_CASE("heads of a layer compete all together or not at all") {
  HeadPrompt prompt = prompt_of(random_head({}, 1, ref()), ref());
  prompt.num_kv_heads = 2;
  const MethodInfo& info = find_method("adakv(snapkv)");
  CHECK_THROWS_WITH_AS(info.prepare({&prompt, 1}, info.bind(std::vector<Assignment>{{"window", "4"}}), ref()),
                       doctest::Contains("omit --heads"), Unavailable);
}

namespace {

/// The tokens that criticalkv keeps of a context with these scores and values 1 2 4 8 16 32 64, where the two query
/// heads have sketches of one number whose magnitudes are 1 and 3.
Ids kept(Index budget, std::vector<Assignment> settings, std::vector<float> given = {8, 7, 6, 5, 4, 3, 2}) {
  const HeadData head = small_head(std::vector<float>(8, 0), 7, 2);
  HeadPrompt prompt = prompt_of(head, ref());
  prompt.prompt_group = "0";
  prompt.layer = LayerId(0);
  prompt.num_kv_heads = 1;
  prompt.output_sketch = ref().adopt(std::vector<float>{1, -3}, 2, 1);
  const MethodInfo scores = given_scores_method("scores:s.h5", {"s.h5", "", {{"0", {{0, {1, 7, std::move(given)}}}}}});
  const MethodInfo info = wrap(all_wrappers().back(), scores);
  const auto cache = info.prepare_head(prompt, info.bind(settings), ref())(budget, 0);
  return answering(*cache, query_block(head, 7, 8, 8, ref()), head);
}

}  // namespace

// Mean norms 2 4 8 16 32 64 128; scores times norms: 16 28 48 80 128 192 256.
TEST_CASE("criticalkv keeps the best scores, then the largest products with the norm of the output") {
  CHECK(all_wrappers().back().info.name == "criticalkv");
  CHECK(kept(4, {}) == Ids{0, 1, 5, 6});  // int(0.5 * 4) = 2 by scores
  CHECK(kept(3, {}) == Ids{0, 5, 6});     // int(1.5) = 1
  CHECK(kept(4, {{"first", "1"}}) == Ids{0, 1, 2, 3});
  CHECK(kept(4, {{"first", "0"}}) == Ids{3, 4, 5, 6});
  CHECK(kept(7, {}) == Ids{0, 1, 2, 3, 4, 5, 6});
  // Token 0 is kept anyway and counts as one of two of the first stage: token 1 is the other one.
  CHECK(kept(4, {{"sinks", "1"}}) == Ids{0, 1, 5, 6});
  CHECK(kept(4, {{"sinks", "3"}}) == Ids{0, 1, 2, 6});
  CHECK(kept(1, {}) == Ids{0});  // int(0.5), but at least one where first > 0
  CHECK(kept(1, {{"first", "0"}}) == Ids{6});
}

// Two query heads whose outputs are the first and the second channel of a value. Values (6, 1), (3, -3), (5, 0) and
// (4, 0): means of the two sizes are 3.5, 3, 2.5 and 2. The largest would be 6, 3, 5, 4, the smallest 1, 3, 0, 0, the
// size of the mean output 3.5, 0, 2.5, 2, and the root mean square 4.3, 3, 3.5, 2.8.
TEST_CASE("criticalkv takes the mean over the query heads of the size of their outputs") {
  HeadData head = small_head(std::vector<float>(5, 0), 4, 2);
  head.dv = 2;
  head.values = {6, 1, 3, -3, 5, 0, 4, 0, 0, 0};
  HeadPrompt prompt = prompt_of(head, ref());
  prompt.prompt_group = "0";
  prompt.layer = LayerId(0);
  prompt.num_kv_heads = 1;
  prompt.output_sketch = ref().adopt(std::vector<float>{1, 0, 0, 1}, 4, 1);
  const MethodInfo scores =
      given_scores_method("scores:s.h5", {"s.h5", "", {{"0", {{0, {1, 4, std::vector<float>(4, 1)}}}}}});
  const MethodInfo info = wrap(all_wrappers().back(), scores);
  const auto kept = [&](Index budget) {
    const auto cache = info.prepare_head(prompt, info.bind(std::vector<Assignment>{{"first", "0"}}), ref())(budget, 0);
    return answering(*cache, query_block(head, 4, 5, 5, ref()), head);
  };
  CHECK(kept(1) == Ids{0});
  CHECK(kept(2) == Ids{0, 1});
  CHECK(kept(3) == Ids{0, 1, 2});
}

// Scores times norms: 1800 28 48 80 128 192 256. With a large epsilon the norms alone decide.
TEST_CASE("epsilon of criticalkv lets the norm outweigh the score") {
  const std::vector<float> scores = {900, 7, 6, 5, 4, 3, 2};
  CHECK(kept(2, {{"first", "0"}, {"epsilon", "0"}}, scores) == Ids{0, 6});
  CHECK(kept(2, {{"first", "0"}, {"epsilon", "1e6"}}, scores) == Ids{5, 6});
}

TEST_CASE("criticalkv is unavailable without sketches, and keeps the plan of its method") {
  HeadPrompt prompt = prompt_of(random_head({}, 1, ref()), ref());
  prompt.output_sketch = {};
  const MethodInfo& info = find_method("criticalkv(snapkv)");
  CHECK(info.granularity == Granularity::kv_head);
  CHECK(info.needs == std::vector<Part>{Part::output_sketch, Part::observed_queries});
  CHECK_THROWS_WITH_AS(info.prepare_head(prompt, info.bind(std::vector<Assignment>{{"window", "4"}}), ref()),
                       doctest::Contains("kvbench-dump-hf"), Unavailable);
  CHECK(find_method("criticalkv(pyramidkv)").plan != nullptr);
}
