// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

std::string refusal(const char* name) {
  try {
    find_method(name);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a composition has the parameters of both parts, and is found once") {
  const MethodInfo& both = find_method("snapkv+kivi4");
  CHECK(&both == &find_method("snapkv+kivi4"));
  CHECK(both.name == "snapkv+kivi4");
  const Params params = both.bind(std::vector<Assignment>{{"kivi4.group", "64"}, {"window", "16"}});
  CHECK(params.text() == "window=16;kivi4.group=64");
  CHECK(both.bind({}).text().empty());
  CHECK_THROWS_WITH_AS(both.bind(std::vector<Assignment>{{"group", "64"}}), doctest::Contains("write kivi4.group"),
                       Error);
  CHECK_THROWS_WITH_AS(both.bind(std::vector<Assignment>{{"grup", "64"}}), doctest::Contains("has no parameter"),
                       Error);
}

TEST_CASE("compositions that make no sense are refused, with the right order") {
  CHECK(refusal("int4+snapkv").find("write snapkv+int4") != std::string::npos);
  CHECK(refusal("snapkv+h2o").find("'h2o' does not") != std::string::npos);
  CHECK(refusal("int4+int8").find("one can") != std::string::npos);
  CHECK(refusal("exact+int8").find("'int8' alone") != std::string::npos);
  for (const char* name : {"snapkv+", "+int8", "snapkv++int8"})
    CHECK(refusal(name).find("no composition") != std::string::npos);
  CHECK(refusal("snapkv+int8+int4").find("no method") != std::string::npos);
}

TEST_CASE("a quantiser of several levels stores another method only at one of them") {
  const MethodInfo& both = find_method("snapkv+int");
  CHECK_THROWS_WITH_AS(both.bind({}), doctest::Contains("6 levels"), Error);
  CHECK(both.bind(std::vector<Assignment>{{"int.bits", "3"}}).text() == "int.bits=3");
}

// Keys 0 to 5 with a step of 5 / 255: values 1, 2, 4, ... are single channels, which are exact.
TEST_CASE("a composition keeps the tokens of its method, and rounds them in the order of the cache") {
  const HeadData head = small_head({5, 1, 4, 0, 3, 2}, 5);
  const auto plain = open_cache("random", {}, prompt_of(head, ref()), 3, 7);
  const auto stored =
      open_cache("random+kivi2", {{"kivi2.group", "3"}, {"kivi2.residual", "3"}}, prompt_of(head, ref()), 3, 7);
  const QueryBlock block = query_block(head, 5, 6, 6, ref());
  const Ids kept = answering(*plain, block, head);
  CHECK(answering(*stored, block, head) == kept);
  // The three kept keys are one group, whose ends are exact and whose middle goes to a third of its range.
  std::vector<float> keys;
  for (const TokenId id : kept) keys.push_back(head.keys[static_cast<std::size_t>(id)]);
  const auto [low, high] = std::ranges::minmax(keys);
  const auto entries = visible_entries(head, stored->entries(block), block, ref());
  for (const Entry& entry : entries[0]) {
    const float key = head.keys[static_cast<std::size_t>(entry.id)];
    const float got = entry.key.empty() ? key : entry.key[0];
    CHECK(std::abs(got - key) <= (high - low) / 6 + 0.01f);
    if (key == low || key == high) CHECK(std::abs(got - key) < 0.01f);
  }
  CHECK(stored->notes().back().text == "kivi2: 2 bits");
}

TEST_CASE("a composition gives its quantiser the seed, also where its method draws nothing") {
  const Index n = 6, d = 16;
  HeadData head{.n = n, .total = n, .d = d, .dv = d};
  for (Index i = 0; i < n * d; ++i) head.keys.push_back(static_cast<float>((i * i + 3 * i) % 17));
  head.values = head.queries = head.keys;
  const QueryBlock block = query_block(head, n - 1, n, n, ref());
  const auto stored = [&](std::uint32_t seed) {
    const auto cache = open_cache("sink+turboquant", {{"turboquant.bits", "4"}}, prompt_of(head, ref()), n, seed);
    return visible_entries(head, cache->entries(block), block, ref())[0][0].key;
  };
  CHECK(stored(7) == stored(7));
  CHECK(stored(7) != stored(8));
}

// Pages {0, 1.4}, {3, 6} and {0, 1.3}: at two pages quest takes the first two. kivi2 stores keys by groups of three:
// {0, 1.4, 3} in steps of 1 as 0 1 3, and {6, 0, 1.3} in steps of 2 as 6 0 2, by which the last page would beat the
// first one. Values are single channels, which are exact: 1 2 4 8.
TEST_CASE("a method that retrieves chooses by exact keys, and reads the full cache as it is stored") {
  const HeadData head = small_head({0, 1.4f, 3, 6, 0, 1.3f, 4, 1, 2.4f, 0.5f}, 6);
  const auto cache =
      open_cache("quest+kivi2", {{"page", "2"}, {"min_pages", "1"}, {"kivi2.group", "3"}, {"kivi2.residual", "3"}},
                 prompt_of(head, ref()), 4, 0);
  const QueryBlock block = query_block(head, 5, 6, 6, ref());
  CHECK(answering(*cache, block, head) == Ids{0, 1, 2, 3});
  const double e = std::exp(1.0), e3 = std::exp(3.0), e6 = std::exp(6.0);
  CHECK(answer(head, block, cache->entries(block), ref())[0] ==
        doctest::Approx((1 + 2 * e + 4 * e3 + 8 * e6) / (1 + e + e3 + e6)));
  CHECK(cache->notes().back().text == "kivi2: 2 bits, stores the full cache in fast memory");
  const auto keys = [&](Index tokens) {
    return ref().read(cache->entries(query_block(head, tokens - 1, tokens, tokens, ref()))[0].token_keys);
  };
  CHECK(keys(6) == std::vector<float>{0, 1, 3, 6, 0, 2});

  // A value is encoded at each step, so that tokens come one by one. Keys wait until there are three, and are encoded
  // after the step that completes them: {4, 1, 2.4} in steps of 1 from 1 on.
  for (Index t = 6; t < 9; ++t) CHECK(append(*cache, token_block(head, t, 10, ref())) == 1);
  CHECK(keys(9) == std::vector<float>{0, 1, 3, 6, 0, 2, 4, 1, 2.4f});
  CHECK(append(*cache, token_block(head, 9, 10, ref())) == 1);
  CHECK(keys(10) == std::vector<float>{0, 1, 3, 6, 0, 2, 4, 1, 2, 0.5f});
}

// Token 0 is a sink; tokens 1 to 6 are clustered, in groups of three from token 1 on.
TEST_CASE("what a method keeps beside the full cache stays exact") {
  const HeadData head = small_head({0.7f, 0, 1.4f, 3, 6, 0, 1.3f, 0.9f, 2.1f, 1}, 7);
  const auto cache = open_cache("clusterkv+kivi2",
                                {{"sinks", "1"},
                                 {"clusters", "1"},
                                 {"every", "2"},
                                 {"added", "1"},
                                 {"kivi2.group", "3"},
                                 {"kivi2.residual", "3"}},
                                prompt_of(head, ref()), 7, 0);
  const auto keys = [&](Index tokens) {
    return ref().read(cache->entries(query_block(head, tokens - 1, tokens, tokens, ref()))[0].token_keys);
  };
  CHECK(keys(7) == std::vector<float>{0.7f, 0, 1, 3, 6, 0, 2});
  for (Index t = 7; t < 10; ++t) REQUIRE(append(*cache, token_block(head, t, t + 1, ref())) == 1);
  CHECK(keys(10) == std::vector<float>{0.7f, 0, 1, 3, 6, 0, 2, 0.9f, 2.1f, 1});
  CHECK(cache->retrievable().first == 1);
  CHECK(cache->retrievable().count == 8);  // tokens 7 and 8 form a cluster when token 9 comes
  const auto rows_of = [&](const std::string& name) {
    Index rows = 0;
    for (const FootprintArray& array : cache->footprint()) rows += array.name == name ? array.rows : 0;
    return rows;
  };
  CHECK(rows_of("recallable keys not yet encoded") == 2);
  CHECK(rows_of("recallable values not yet encoded") == 4);  // the last three, and one that this step encodes
  CHECK(rows_of("sink and tail keys") == 2);
  CHECK(cache->notes().back().text == "kivi2: 2 bits, stores the full cache in slow memory");
}

// Two keys wait in the prompt, so that the first decoded key is added behind exact rows which budgets share.
TEST_CASE("budgets share the full cache of the prompt, and no decoded token") {
  const HeadData head = small_head({0, 1.4f, 3, 6, 1.3f, 0, 1, 2}, 5);
  const MethodInfo& info = find_method("oracle-topk+kivi2");
  const Params params = info.bind(std::vector<Assignment>{{"kivi2.group", "3"}, {"kivi2.residual", "3"}});
  const MakeCache make = info.prepare_head(prompt_of(head, ref()), params, ref());
  const auto decodes = make(2, 0), stays = make(3, 0);
  const auto keys = [&](const CompressedCache& cache, Index tokens) {
    return cache.entries(query_block(head, tokens - 1, tokens, tokens, ref()))[0].token_keys;
  };
  CHECK(keys(*decodes, 5).same_as(keys(*stays, 5)));
  CHECK(ref().read(keys(*stays, 5)) == std::vector<float>{0, 1, 3, 6, 1.3f});
  for (Index t = 5; t < 8; ++t) REQUIRE(append(*decodes, token_block(head, t, t + 1, ref())) == 1);
  CHECK(ref().read(keys(*decodes, 8)) == std::vector<float>{0, 1, 3, 6, 2, 0, 1, 2});
  CHECK(ref().read(keys(*stays, 5)) == std::vector<float>{0, 1, 3, 6, 1.3f});
}

TEST_CASE("a composition calls rounded the tables of tokens, and none of merged entries") {
  const HeadData head = random_head({.n = 40, .decoded = 4, .d = 32, .dv = 32}, 3, ref());
  Index merged = 0;
  for (const std::string method :
       {"kmeans", "chelsea", "bsm", "mesh", "cam", "subgen", "snapkv", "uniform", "retroinfer"}) {
    CAPTURE(method);
    const QueryBlock block = query_block(head, 39, 40, 40, ref());
    const auto tables = [&](const std::string& of) {
      return open_cache(of, {}, prompt_of(head, ref()), 12, 0)->entries(block);
    };
    const EntryTables plain = tables(method), stored = tables(method + "+int8");
    REQUIRE(stored.size() == plain.size());
    for (std::size_t t = 0; t < plain.size(); ++t) {
      const bool own = plain[t].own_keys.present() || plain[t].own_values.present() || plain[t].token_keys.present();
      CHECK_FALSE(plain[t].rounded);
      CHECK(stored[t].rounded == !own);
      merged += own;
    }
  }
  CHECK(merged > 4);
}
