// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Degrees = std::vector<std::pair<TokenId, float>>;

/// The entries of chelsea for the eight tokens, with one sink, one recent token and chunks of four.
std::vector<Entry> eight_held(Index budget) {
  const HeadData head = eight_tokens();
  auto session = open_layer("chelsea", {{"sinks", "1"}, {"recent", "1"}, {"chunk", "4"}}, {head}, budget);
  return held(session.entries(std::vector<QueryBlock>(1))[0], head);
}

}  // namespace

// Middle 1 2 3 4 | 5 6. Links 3-2 .96, 1-2 .8, 5-6 0 (fixtures.hpp).
TEST_CASE("chelsea: eight tokens, worked by hand") {
  CHECK(find_method("csm").name == "chelsea");
  CHECK(find_method("centroidkv").name == "chelsea");
  CHECK(degrees_of(eight_held(8)) == Degrees{{0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}, {6, 1}, {7, 1}});
  const auto seven = eight_held(7);
  CHECK(degrees_of(seven) == Degrees{{0, 1}, {1, 1}, {2, 2}, {4, 1}, {5, 1}, {6, 1}, {7, 1}});
  check_merged(seven[2], {3.5f, 3.5f}, 6);
  const auto six = eight_held(6);
  CHECK(degrees_of(six) == Degrees{{0, 1}, {2, 3}, {4, 1}, {5, 1}, {6, 1}, {7, 1}});
  check_merged(six[1], {8 / 3.0f, 7 / 3.0f}, 14 / 3.0f);
  const auto five = eight_held(5);
  CHECK(degrees_of(five) == Degrees{{0, 1}, {2, 3}, {4, 1}, {6, 2}, {7, 1}});
  check_merged(five[3], {0.5f, 1}, 48);
  // Second round, on merged keys: A (8,7)/3 and (.5,1), B (0,1). Cosines .659 and .894: token 6's group joins token 4.
  const auto four = eight_held(4);
  CHECK(degrees_of(four) == Degrees{{0, 1}, {2, 3}, {4, 3}, {7, 1}});
  check_merged(four[2], {1 / 3.0f, 1}, (16 + 2 * 48) / 3.0f);
}

// The same with its answer: query (1,1), so logits 10, 5 (degree 3), 1, 1, 2, 10.
TEST_CASE("chelsea answers with degrees as weights in both sums") {
  HeadData head = eight_tokens();
  head.n = 7;  // the query is that of token 7, which is in no entry
  auto session = open_layer("chelsea", {{"sinks", "1"}, {"recent", "0"}, {"chunk", "4"}}, {head}, 5);
  const QueryBlock block = query_block(head, 7, 8, 8, ref());
  const auto tables = session.entries(std::vector<QueryBlock>{block})[0];
  double num = 0, den = 0;
  const auto add = [&](double degree, double logit, double value) {
    num += degree * std::exp(logit) * value;
    den += degree * std::exp(logit);
  };
  add(1, 10, 1), add(3, 5, 14 / 3.0), add(1, 1, 16), add(1, 1, 32), add(1, 2, 64);
  CHECK(answer(head, block, tables, ref())[0] == doctest::Approx(num / den));
}

// Five middle tokens, chunks of four: the fifth is alone in its chunk: it must have no link and must not stop the
// rounds.
TEST_CASE("chelsea: a last chunk of one token has no link, and merges once chunks are cut again") {
  const HeadData head = small_head(std::vector<float>(6, 1), 5);
  const auto degrees = [&](Index budget) {
    auto session = open_layer("chelsea", {{"sinks", "0"}, {"recent", "0"}, {"chunk", "4"}}, {head}, budget);
    return degrees_of(held(session.entries(std::vector<QueryBlock>(1))[0], head));
  };
  CHECK(degrees(3) == Degrees{{1, 3}, {3, 1}, {4, 1}});  // tokens 0 and 2 join 1
  CHECK(degrees(2) == Degrees{{3, 4}, {4, 1}});
  CHECK(degrees(1) == Degrees{{4, 5}});
}

// Tokens 0 and 3 have equal keys, and so have 1 and 2, but in chunks of two they are not compared.
TEST_CASE("chelsea links inside chunks only, bsm over the whole middle") {
  const HeadData head = plane_head({{1, 0}, {0, 1}, {0, 1}, {1, 0}, {1, 1}}, 4);
  const std::vector<Assignment> bare = {{"sinks", "0"}, {"recent", "0"}};
  std::vector<Assignment> chunked = bare;
  chunked.push_back({"chunk", "2"});
  auto layer = open_layer("chelsea", chunked, {head}, 2);
  const auto near = held(layer.entries(std::vector<QueryBlock>(1))[0], head);
  check_merged(near[0], {0.5f, 0.5f}, 1.5f);
  check_merged(near[1], {0.5f, 0.5f}, 6);
  const auto cache = open_cache("bsm", bare, prompt_of(head, ref()), 2, 0);
  const auto far = held(*cache, head);
  CHECK(degrees_of(far) == Degrees{{1, 2}, {3, 2}});
  CHECK(far[0].key.empty());  // the mean of equal keys is the key of the B token
  CHECK(far[1].value == std::vector<float>{4.5f});
}

TEST_CASE("chelsea: every head of a layer merges by its own keys") {
  const HeadData a = random_head({.n = 40, .decoded = 6}, 1, ref()), b = random_head({.n = 40, .decoded = 6}, 2, ref());
  const auto held_by = [&](std::vector<HeadData> heads, std::size_t h) {
    auto session = open_layer("chelsea", {{"chunk", "16"}}, heads, 20);
    return held(session.entries(std::vector<QueryBlock>(heads.size()))[h], heads[h]);
  };
  CHECK(held_by({a, b}, 0) == held_by({a}, 0));
  CHECK(held_by({a, b}, 1) == held_by({b}, 0));
  CHECK(degrees_of(held_by({a, b}, 0)) != degrees_of(held_by({a, b}, 1)));
}

TEST_CASE("chelsea starts from an empty context, and its first tokens are the sinks") {
  const HeadData head = random_head({.n = 0, .decoded = 40, .d = 4, .dv = 2, .group = 1}, 9, ref());
  auto session = open_layer("chelsea", {{"sinks", "2"}, {"recent", "3"}, {"chunk", "4"}, {"slack", "2"}}, {head}, 8);
  for (Index t = 0; t < 40;) {
    const Index taken = session.append(std::vector<TokenBlock>{token_block(head, t, 40, ref())});
    t += taken;
    const QueryBlock block = query_block(head, t - 1, t, t, ref());
    const auto entries = visible_entries(head, session.entries(std::vector<QueryBlock>{block})[0], block, ref())[0];
    float sum = 0;
    for (const Entry& entry : entries) sum += entry.den;
    CHECK(sum == static_cast<float>(t));
    CHECK(entries.size() <= 8);
    CHECK((entries[0].id == 0 && entries[0].den == 1));
    CHECK((entries[1].id == 1 && entries[1].den == 1));
    CHECK((entries.back().id == t - 1 && entries.back().den == 1));
  }
}
