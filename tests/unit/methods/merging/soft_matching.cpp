// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "fixtures.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Slots = std::vector<Index>;
constexpr auto mesh = MergeRule::Matching::mesh;

/// The remaining ids, in cache order, after `count` of eight equal entries in chunks of four were merged.
std::vector<TokenId> left_of_eight(MergeRule::Order order, Index count) {
  const MergeRule rule{.chunk = 4, .order = order};
  const MergedEntries entries = entries_of(small_head(std::vector<float>(8, 1), 8), ref());
  return merge_entries(rule, entries, merge_groups(rule, merge_links(rule, entries.keys, ref()), 8, count), ref()).ids;
}

}  // namespace

TEST_CASE("a share of the entries is rounded down to a number, with a tolerance for rounding errors") {
  const auto count = [](double ratio, Index entries) { return merge_count({.ratio = ratio}, entries, 1000, 0); };
  CHECK(0.29 * 100 < 29);  // because of rounding
  CHECK(count(0.29, 100) == 29);
  CHECK(0.07 * 100 > 7);
  CHECK(count(0.07, 100) == 7);
  CHECK(count(0.3, 9) == 2);  // 2.7
  CHECK(count(0.5, 7) == 3);  // at most half: three links of an odd chunk of 7 stay out
  CHECK(count(0.5, 3) == 1);
  CHECK(count(0.5, 2) == 1);
  CHECK(count(0.05, 10) == 1);                         // with 0, rounds would not end
  CHECK(merge_count({.ratio = 0.5}, 100, 4, 0) == 4);  // not more than needed
}

TEST_CASE("the share decreases per round down to the floor") {
  const MergeSchedule schedule{.ratio = 0.5, .decay = 0.1, .floor = 0.25};
  Slots counts;
  for (Index round = 0; round < 5; ++round) counts.push_back(merge_count(schedule, 100, 1000, round));
  CHECK(counts == Slots{50, 40, 30, 25, 25});
}

TEST_CASE("links go from even to odd offsets, to the most similar of the chunk, ties to the lower") {
  const MergedEntries entries = entries_of(eight_tokens(), ref());
  const Buffer<const float> middle = entries.keys.slice(1, 6);
  const auto link = [](Index from, Index to, float similarity) {
    return
        [=](const MergeLink& l) { return l.from == from && l.to == to && std::abs(l.similarity - similarity) < 1e-6f; };
  };

  // Chunks 1 2 3 4 | 5 6 of the example: the only partner of token 5 is (0,2).
  const auto chunked = merge_links({.chunk = 4}, middle, ref());
  REQUIRE(chunked.size() == 3);
  CHECK(link(0, 1, 0.8f)(chunked[0]));
  CHECK(link(2, 1, 0.96f)(chunked[1]));
  CHECK(link(4, 5, 0)(chunked[2]));
  // One chunk: its partner is token 2.
  const auto whole = merge_links({}, middle, ref());
  REQUIRE(whole.size() == 3);
  CHECK(link(4, 1, 0.8f)(whole[2]));
  // Equal keys: the lower B.
  const auto equal = merge_links({.chunk = 4}, rows_of(std::vector<float>(5, 3), 1), ref());
  REQUIRE(equal.size() == 2);
  CHECK(link(2, 1, 1)(equal[1]));
}

TEST_CASE("an odd chunk has one more A, which links; a chunk of one token has no link") {
  const auto links = [&](Index tokens) {
    return merge_links({.chunk = 4}, rows_of(std::vector<float>(static_cast<std::size_t>(tokens), 1), 1), ref());
  };
  const auto froms = [&](Index tokens) {
    Slots slots;
    for (const MergeLink& link : links(tokens)) slots.push_back(link.from);
    return slots;
  };
  CHECK(froms(3) == Slots{0, 2});
  CHECK(froms(4) == Slots{0, 2});
  CHECK(froms(5) == Slots{0, 2});  // the fifth is a chunk of its own
  CHECK(froms(7) == Slots{0, 2, 4, 6});
  CHECK(froms(1).empty());
  CHECK(froms(0).empty());
  for (const auto& [tokens, linking] :
       std::vector<std::pair<Index, Index>>{{0, 0}, {1, 1}, {3, 2}, {4, 2}, {5, 3}, {7, 4}}) {
    CHECK(linking_slots({.chunk = 4}, tokens) == linking);
  }
  CHECK(linking_slots({}, 7) == 4);
  CHECK(linking_slots({.matching = mesh}, 7) == 7);
}

TEST_CASE("a zero key has similarity 0 and still has a partner") {
  const auto links = merge_links({}, rows_of({0, 0, 1, 0}, 2), ref());
  REQUIRE(links.size() == 1);
  CHECK(links[0] == MergeLink{0, 1, 0});
}

TEST_CASE("the most similar links of all chunks are kept, ties to the lower A, and a group has the slot of its B") {
  const std::vector<MergeLink> links = {{0, 1, 0.5f}, {2, 1, 0.9f}, {4, 5, 0.5f}, {6, 5, 0.7f}};
  CHECK(merge_groups({}, links, 8, 0) == Slots{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(merge_groups({}, links, 8, 1) == Slots{0, 1, 1, 3, 4, 5, 6, 7});
  CHECK(merge_groups({}, links, 8, 2) == Slots{0, 1, 1, 3, 4, 5, 5, 7});
  CHECK(merge_groups({}, links, 8, 3) == Slots{1, 1, 1, 3, 4, 5, 5, 7});
  CHECK(merge_groups({}, links, 8, 4) == Slots{1, 1, 1, 3, 5, 5, 5, 7});
}

TEST_CASE("in a mesh links chain, mutual links count once, and a group has the slot of its first entry") {
  // Cosines: 0-1 .8, 1-2 .96, 2-3 .8; the best of 1 is 2 and the best of 2 is 1.
  const auto links = merge_links({.matching = mesh}, rows_of({1, 0, 4, 3, 3, 4, 0, 1}, 2), ref());
  REQUIRE(links.size() == 4);
  CHECK((links[0].to == 1 && links[1].to == 2 && links[2].to == 1 && links[3].to == 2));
  const MergeRule rule{.matching = mesh};
  CHECK(merge_groups(rule, links, 4, 1) == Slots{0, 1, 1, 3});
  CHECK(merge_groups(rule, links, 4, 2) == Slots{0, 0, 0, 3});
  CHECK(merge_groups(rule, links, 4, 3) == Slots{0, 0, 0, 0});
}

TEST_CASE("order=place keeps the order, order=concat places the remaining entries of A before B") {
  // Tokens 0 and 2 join 1: left are A 4 6 and B 1 3 5 7.
  CHECK(left_of_eight(MergeRule::Order::place, 2) == std::vector<TokenId>{1, 3, 4, 5, 6, 7});
  CHECK(left_of_eight(MergeRule::Order::concat, 2) == std::vector<TokenId>{4, 6, 1, 3, 5, 7});
  // Without remaining A entries both orders are the same.
  CHECK(left_of_eight(MergeRule::Order::concat, 4) == left_of_eight(MergeRule::Order::place, 4));
}

// Degrees 1 2 3 | 1, keys 1 4 2 | 9, values 10 40 20 | 90: (1 + 8 + 6) / 6 and (10 + 80 + 60) / 6.
TEST_CASE("a merge weights keys and values by degree, adds degrees, and does not change other entries") {
  const float odd = 0.1f;
  const MergedEntries entries{.keys = rows_of({1, 4, 2, odd}, 1),
                              .values = rows_of({10, 40, 20, odd}, 1),
                              .ids = {3, 5, 8, 9},
                              .degrees = {1, 2, 3, 7}};
  const MergedEntries merged = merge_entries({}, entries, {1, 1, 1, 3}, ref());
  CHECK(merged.ids == std::vector<TokenId>{5, 9});
  CHECK(merged.degrees == std::vector<float>{6, 7});
  CHECK(ref().read(merged.keys) == std::vector<float>{2.5f, odd});
  CHECK(ref().read(merged.values) == std::vector<float>{25, odd});
}

TEST_CASE("by Jensen's inequality the mass of a group never exceeds that of its tokens") {
  for (const MergeRule& rule : {MergeRule{.chunk = 8}, MergeRule{}, MergeRule{.matching = mesh}}) {
    const HeadData head = random_head({.n = 60, .decoded = 0, .d = 4, .dv = 2, .group = 1}, 3, ref());
    MergedEntries entries = entries_of(head, ref());
    std::vector<Index> slot_of(60);  // of each token
    std::iota(slot_of.begin(), slot_of.end(), 0);
    for (const Index count : {20, 20, 8}) {
      const auto groups = merge_groups(rule, merge_links(rule, entries.keys, ref()), entries.size(),
                                       std::min(count, entries.size() / 2));
      const MergedEntries merged = merge_entries(rule, entries, groups, ref());
      for (Index& slot : slot_of) {
        const TokenId id = entries.ids[static_cast<std::size_t>(groups[static_cast<std::size_t>(slot)])];
        slot = std::ranges::find(merged.ids, id) - merged.ids.begin();
      }
      entries = merged;
    }
    REQUIRE(entries.size() == 12);
    const std::vector<float> keys = ref().read(entries.keys);
    const auto mass = [&](const std::vector<float>& rows, Index i, Index query) {
      double logit = 0;
      for (Index c = 0; c < 4; ++c) {
        logit +=
            double{rows[static_cast<std::size_t>(4 * i + c)]} * head.queries[static_cast<std::size_t>(4 * query + c)];
      }
      return std::exp(logit);
    };
    bool below = false;
    for (Index query = 0; query < 60; ++query) {
      std::vector<double> truth(12, 0), members(12, 0);
      for (Index i = 0; i < 60; ++i) {
        truth[static_cast<std::size_t>(slot_of[static_cast<std::size_t>(i)])] += mass(head.keys, i, query);
        members[static_cast<std::size_t>(slot_of[static_cast<std::size_t>(i)])] += 1;
      }
      for (std::size_t g = 0; g < 12; ++g) {
        REQUIRE(entries.degrees[g] == members[g]);
        const double merged = members[g] * mass(keys, static_cast<Index>(g), query);
        CHECK(merged <= truth[g] * (1 + 1e-5));
        below |= merged < truth[g] * 0.9;
      }
    }
    CHECK(below);
  }
}
