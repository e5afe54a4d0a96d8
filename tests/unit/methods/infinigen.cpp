// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include <support/small.hpp>

#include <kvbench/methods/retrieval/skew.hpp>
#include <kvbench/session/session.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Settings = std::vector<Assignment>;

/// The caches of a layer of these heads, with calls for single heads.
struct Layer {
  std::vector<HeadData> heads;
  Backend& backend;
  std::unique_ptr<Session> session;

  Layer(std::vector<HeadData> of, const Settings& settings, Index budget) : heads(std::move(of)), backend(ref()) {
    const MethodInfo& info = find_method("infinigen");
    std::vector<HeadPrompt> prompts;
    for (const HeadData& head : heads) prompts.push_back(prompt_of(head, backend));
    session = std::make_unique<Session>(info.prepare(prompts, info.bind(settings), backend)(budget, 0), heads[0].n,
                                        false, backend);
  }

  void append(Index begin, Index end) {
    std::vector<TokenBlock> blocks;
    for (const HeadData& head : heads) blocks.push_back(token_block(head, begin, end, backend));
    CHECK(session->append(blocks) == end - begin);
  }

  /// Ids that answer the queries begin .. end - 1: by head, then row. `change` may alter a block.
  std::vector<std::vector<Ids>> answers(Index begin, Index end, Index tokens,
                                        void (*change)(QueryBlock&, Backend&) = nullptr) {
    std::vector<QueryBlock> blocks;
    for (const HeadData& head : heads) {
      blocks.push_back(query_block(head, begin, end, tokens, backend));
      if (change != nullptr) change(blocks.back(), backend);
    }
    const auto tables = session->entries(blocks);
    std::vector<std::vector<Ids>> ids(heads.size());
    for (std::size_t h = 0; h < heads.size(); ++h) {
      for (const auto& row : visible_entries(heads[h], tables[h], blocks[h], backend)) ids[h].push_back(ids_of(row));
    }
    return ids;
  }
};

/// Four tokens and two more, d = 2. Queries are along (1, 1), except at the last two positions, where they are (1, 0).
HeadData tilted_head() {
  HeadData head{.n = 4, .total = 6, .d = 2, .dv = 1, .group = 1};
  head.keys = {3, 3, 5, -5, 0, 4, 1, 1, 6, 0, 0, 0};
  head.values = {1, 2, 4, 8, 16, 32};
  head.queries = {1, 1, 2, 2, 0.1f, -0.1f, 1, 1, 1, 0, 1, 0};
  return head;
}

void without_speculation(QueryBlock& block, Backend&) { block.speculated = {}; }

}  // namespace

TEST_CASE("the skewing matrix holds the right singular vectors, the largest last") {
  const auto queries = ref().adopt(std::vector<float>{1, 1, 2, 2, 0.1f, -0.1f}, 3, 2);
  const auto rows = ref().read(skewing(queries, ref()));
  const double root = std::sqrt(0.5);
  CHECK(std::abs(rows[2]) == doctest::Approx(root));
  CHECK(rows[2] == doctest::Approx(rows[3]));
  CHECK(std::abs(rows[0]) == doctest::Approx(root));
  CHECK(rows[0] == doctest::Approx(-rows[1]));
  // |q A| sums to (sqrt 2 + 2 sqrt 2) along (1, 1) and 0.1 sqrt 2 across; means over the three queries.
  const auto weights = column_weights(queries, ref().adopt(std::vector(rows), 2, 2), ref());
  CHECK(weights[0] == doctest::Approx(0.1 * std::sqrt(2) / 3));
  CHECK(weights[1] == doctest::Approx(std::sqrt(2)));
}

TEST_CASE("the heaviest columns are listed in order, ties to the lower one") {
  CHECK(heaviest(std::vector<float>{1, 5, 3, 5, 3}, 3) == std::vector<std::int32_t>{1, 2, 3});
  CHECK(heaviest(std::vector<float>{2, 2}, 5) == std::vector<std::int32_t>{0, 1});
}

// Along (1, 1) the query (1, 0) scores the keys (k1 + k2) / 2 = 3, 0, 2, 1: tokens 0 and 2, although its logits are 3,
// 5, 0, 1.
TEST_CASE("infinigen scores in the column that the observed queries use most") {
  Layer half({tilted_head()}, {{"ratio", "0.5"}}, 2);
  CHECK(half.answers(4, 5, 5)[0][0] == Ids{0, 2});
  Layer whole({tilted_head()}, {{"ratio", "1"}}, 2);
  CHECK(whole.answers(4, 5, 5)[0][0] == Ids{0, 1});
  // At least one column: int(0.1 * 2) would be none.
  Layer least({tilted_head()}, {{"ratio", "0.1"}}, 2);
  CHECK(least.answers(4, 5, 5)[0][0] == Ids{0, 2});
}

// Queries (3, 0) and (0, 1): the skewing keeps the axes, and columns by queries is the first axis. The keys are large
// along the second. The query is (1, 1): by the first axis 2 1 0 0, by both -6 8 9 0.
TEST_CASE("infinigen's columns by queries, and by queries and keys") {
  HeadData head{.n = 4, .total = 5, .d = 2, .dv = 1, .group = 1};
  head.keys = {2, -8, 1, 7, 0, 9, 0, 0, 0, 0};
  head.values = {1, 2, 4, 8, 16};
  head.queries = {3, 0, 0, 1, 3, 0, 0, 1, 1, 1};
  CHECK(Layer({head}, {{"ratio", "0.5"}}, 1).answers(4, 5, 5)[0][0] == Ids{0});
  Layer both({head}, {{"ratio", "0.5"}, {"columns", "union"}}, 1);
  CHECK(both.answers(4, 5, 5)[0][0] == Ids{2});
  CHECK(both.session->footprint()[0][2].cols == 2);
  // The same vector added to all keys moves all scores alike.
  for (std::size_t i = 0; i < head.keys.size(); i += 2) head.keys[i] += 5, head.keys[i + 1] -= 3;
  CHECK(Layer({head}, {{"ratio", "0.5"}}, 1).answers(4, 5, 5)[0][0] == Ids{0});
}

// The context's queries are along (1, 4), those of the calibration text along the axes, mostly the first. The query is
// (1, 1): along (1, 4) the keys have -2 48 36 0, on the second axis, which the context's queries use most, -8 7 9 0,
// and on the first, which queries and keys of the calibration text use most, 30 20 0 0.
TEST_CASE("infinigen skews by the calibration text, which also chooses the columns of columns=union") {
  HeadData head{.n = 4, .total = 5, .d = 2, .dv = 1, .group = 1};
  head.keys = {30, -8, 20, 7, 0, 9, 0, 0, 0, 0};
  head.values = {1, 2, 4, 8, 16};
  head.queries = {1, 4, 1, 4, 1, 4, 1, 4, 1, 1};
  HeadData sample = head;
  sample.keys = {5, 0, 4, 1, 3, 0, 5, 0, 0, 0};
  sample.queries = {3, 0, 0, 1, 3, 0, 0, 1, 0, 0};
  const MethodInfo& info = find_method("infinigen");
  HeadPrompt prompt = prompt_of(head, ref());
  const auto fetched = [&](const char* columns) {
    const Settings settings = {{"ratio", "0.5"}, {"columns", columns}};
    Session session(info.prepare({&prompt, 1}, info.bind(settings), ref())(1, 0), 4, false, ref());
    const QueryBlock block = query_block(head, 4, 5, 5, ref());
    return ids_of(visible_entries(head, session.entries({block}).front(), block, ref()).front());
  };
  CHECK(fetched("q") == Ids{1});
  prompt.calibration = std::make_shared<const HeadPrompt>(prompt_of(sample, ref()));
  CHECK(fetched("q") == Ids{2});
  CHECK(fetched("union") == Ids{0});
}

// d = 1, logits are the keys. The speculated query is -1: the tokens with the smallest keys are fetched.
TEST_CASE("infinigen fetches by the speculated query, and reports where it used the true one") {
  const HeadData head = small_head({1, 5, 2, 7, 3, 0}, 5);
  const auto mislead = [](QueryBlock& block, Backend& b) {
    block.speculated =
        b.adopt(std::vector<float>(static_cast<std::size_t>(block.queries.rows()), -1), block.queries.rows(), 1);
  };
  Layer guess({head}, {}, 2);
  CHECK(guess.answers(5, 6, 6, mislead)[0][0] == Ids{0, 2});
  CHECK(guess.session->notes().empty());
  Layer truth({head}, {{"query", "true"}}, 2);
  CHECK(truth.answers(5, 6, 6, mislead)[0][0] == Ids{1, 3});
  REQUIRE(truth.session->notes().size() == 1);
  Layer fallback({head, head}, {}, 2);
  CHECK(fallback.answers(5, 6, 6, without_speculation)[0][0] == Ids{1, 3});
  REQUIRE(fallback.session->notes().size() == 1);
  CHECK(fallback.session->notes()[0].text.starts_with("query=true (upper bound)"));
  CHECK(fallback.session->notes()[0].count == 2);
  Layer strict({head}, {{"query", "speculated"}}, 2);
  CHECK(strict.answers(5, 6, 6, mislead)[0][0] == Ids{0, 2});
  CHECK_THROWS_AS(strict.answers(5, 6, 6, without_speculation), Unavailable);
}

// Keys 5 2 7 | 9 1 3: the query's own token is one of the two tokens of the budget, the other is the best token before
// it.
TEST_CASE("infinigen attends to the query's own token and to none after it") {
  const HeadData head = small_head({5, 2, 7, 9, 1, 3}, 3);
  Layer layer({head}, {}, 2);
  CHECK(layer.answers(3, 4, 4)[0][0] == Ids{0, 2});  // prefill: the context's tokens only
  layer.append(3, 6);
  const auto ids = layer.answers(3, 6, 6)[0];
  CHECK(ids == std::vector<Ids>{{2, 3}, {3, 4}, {3, 5}});
  Layer one({head}, {}, 1);
  one.append(3, 5);
  CHECK(one.answers(3, 5, 5)[0] == std::vector<Ids>{{3}, {4}});
}

// Two query heads with the queries 1 and -1: each fetches its own best token; the mean of their scores is 0 everywhere.
TEST_CASE("infinigen selects per query head, or per kv head") {
  HeadData head = small_head({5, 2, 7, 9, 0}, 4, 2);
  for (std::size_t i = 5; i < 10; ++i) head.queries[i] = -1;
  Layer each({head}, {}, 1);
  CHECK(each.answers(4, 5, 5)[0] == std::vector<Ids>{{3}, {1}});
  Layer both({head}, {{"per", "kv_head"}}, 1);
  CHECK(both.answers(4, 5, 5)[0] == std::vector<Ids>{{0}, {0}});
}

// Head 0 scores 10 9 7 5 1: three within 4 of its best. Head 1 scores 3 2 1 0 0: all five by its own threshold, none by
// that of head 0.
TEST_CASE("infinigen's dynamic fetch is the mean over the heads of the layer, for all of them") {
  const std::vector<HeadData> heads = {small_head({10, 9, 7, 5, 1, 0}, 5), small_head({3, 2, 1, 0, 0, 0}, 5)};
  const auto fetched = [&](Settings more, Index budget) {
    more.push_back({"fetch", "dynamic"});
    Layer layer(heads, more, budget);
    const auto ids = layer.answers(5, 6, 6);
    return std::vector<Ids>{ids[0][0], ids[1][0]};
  };
  CHECK(fetched({{"max_share", "1"}}, 5) == std::vector<Ids>{{0, 1, 2, 3}, {0, 1, 2, 3}});
  CHECK(fetched({{"max_share", "1"}, {"threshold", "head0"}}, 5) == std::vector<Ids>{{0}, {0}});  // (3 + 0) / 2
  CHECK(fetched({{"max_share", "1"}, {"alpha", "1"}}, 5) == std::vector<Ids>{{0, 1}, {0, 1}});
  CHECK(fetched({{"max_share", "1"}}, 3) == std::vector<Ids>{{0, 1, 2}, {0, 1, 2}});  // the budget bounds it
  CHECK(fetched({{"max_share", "0.5"}}, 5) == std::vector<Ids>{{0, 1}, {0, 1}});      // int(0.5 * 5)
  CHECK(fetched({}, 5) == std::vector<Ids>{{0}, {0}});                                // int(0.2 * 5)
}

// Queries of one block that fetch different numbers: at 3 they score 9 1 0 | own, within 4: one; at 4 9 1 0 8 | own:
// two.
TEST_CASE("infinigen's dynamic fetch differs from query to query") {
  Layer layer({small_head({9, 1, 0, 8, 0}, 3)}, {{"fetch", "dynamic"}, {"max_share", "1"}}, 5);
  layer.append(3, 5);
  CHECK(layer.answers(3, 5, 5)[0] == std::vector<Ids>{{0, 3}, {0, 3, 4}});
}

TEST_CASE("infinigen needs observed queries") {
  const MethodInfo& info = find_method("infinigen");
  HeadPrompt prompt = prompt_of(small_head({1, 2, 3}, 2), ref());
  prompt.observed = {};
  prompt.observed_positions.clear();
  const std::vector<HeadPrompt> prompts = {prompt};
  CHECK_THROWS_AS(info.prepare(prompts, info.bind({}), ref()), Unavailable);
}

TEST_CASE("rows that are scored in parts fetch the same tokens as each query alone") {
  const Index n = 40, m = 70;  // more queries than a part has rows
  const HeadData head = random_head({.n = n, .decoded = m, .group = 2}, 3, ref());
  Layer layer({head}, {}, 12);
  const auto fetched = [&](Index begin, Index end) {
    const QueryBlock block = query_block(head, begin, end, n + m, ref());
    return visible_entries(head, layer.session->entries({block}).front(), block, ref());
  };
  const auto together = fetched(n, n + m);
  for (Index i = 0; i < m; ++i) {
    CAPTURE(i);
    const auto alone = fetched(n + i, n + i + 1);
    for (Index g = 0; g < 2; ++g) {
      CHECK(ids_of(together[static_cast<std::size_t>(g * m + i)]) == ids_of(alone[static_cast<std::size_t>(g)]));
    }
  }
}
