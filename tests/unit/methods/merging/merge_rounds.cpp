// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/merge_rounds.hpp>

#include "fixtures.hpp"

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

const MergeRule rule{.chunk = 4};
const MergeSchedule halves{.ratio = 0.5};

MergeRounds rounds_of_eight(Index round = 0) {
  return {rule, halves, entries_of(small_head({1, 2, 1, 3, 2, 1, 1, 1}, 8), ref()), round, ref()};
}

/// Entries before the last round towards `target`, after it, and the number of the round after it.
std::vector<Index> sizes(MergeRounds& rounds, Index target) {
  const MergeRounds::LastRound last = rounds.last_round(target);
  return {last.entries.size(), last.groups.size(), last.rounds};
}

}  // namespace

// Whole rounds take 8 entries to 4 and 4 to 2. A last round starts from 8 for 7 to 4 entries, from 4 for 3 and 2, from
// 2 for 1.
TEST_CASE("whole rounds lead to the last one of each target, in any order of targets") {
  MergeRounds rounds = rounds_of_eight();
  CHECK(sizes(rounds, 7) == std::vector<Index>{8, 7, 1});
  CHECK(sizes(rounds, 4) == std::vector<Index>{8, 4, 1});  // a whole round, which is the last
  CHECK(sizes(rounds, 3) == std::vector<Index>{4, 3, 2});
  CHECK(sizes(rounds, 2) == std::vector<Index>{4, 2, 2});
  CHECK(sizes(rounds, 1) == std::vector<Index>{2, 1, 3});
  CHECK(sizes(rounds, 5) == std::vector<Index>{8, 5, 1});  // starts again
  CHECK(sizes(rounds, 2) == std::vector<Index>{4, 2, 2});
}

TEST_CASE("decreasing targets continue from the round reached") {
  const auto flops = [&](auto work) {
    const double before = ref().cost().flops;
    work();
    return ref().cost().flops - before;
  };
  MergedEntries entries = rounds_of_eight().last_round(7).entries;
  std::vector<MergeLink> links;
  const double links_of_eight = flops([&] { links = merge_links(rule, entries.keys, ref()); });
  const double round = flops([&] { entries = merge_entries(rule, entries, merge_groups(rule, links, 8, 4), ref()); });
  const double links_of_four = flops([&] { merge_links(rule, entries.keys, ref()); });
  REQUIRE(links_of_four > 0);

  MergeRounds rounds = rounds_of_eight();
  CHECK(flops([&] { rounds.first_links(); }) == links_of_eight);
  CHECK(flops([&] { rounds.last_round(6); }) == 0);
  CHECK(flops([&] { rounds.last_round(5); }) == 0);
  CHECK(flops([&] { rounds.last_round(3); }) == round + links_of_four);
  CHECK(flops([&] { rounds.last_round(3); }) == 0);
  CHECK(flops([&] { rounds.last_round(6); }) == links_of_eight);  // starts again
}

TEST_CASE("round numbers continue from the first one") {
  MergeRounds rounds = rounds_of_eight(5);
  CHECK(rounds.last_round(6).rounds == 6);
  CHECK(rounds.last_round(3).rounds == 7);
}
