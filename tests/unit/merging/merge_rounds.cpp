// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/merging/merge_rounds.hpp>

#include "fixtures.hpp"

using namespace kvbench;
using namespace kvbench::testing;

namespace {

const MergeRule rule{.chunk = 4};
const MergeSchedule halves{.ratio = 0.5};

MergeRounds rounds_of_eight(Backend& backend) {
  return {rule, halves, entries_of(small_head({1, 2, 1, 3, 2, 1, 1, 1}, 8), backend), {}, 0, backend};
}

}  // namespace

// Whole rounds take 8 entries to 4 and 4 to 2. A last round starts from 8 for 7 to 4 entries, from 4 for 3 and 2, from 2 for 1.
TEST_CASE("whole rounds are run once, and the last one of each budget leaves them as they are") {
  const auto backend = make_ref_backend();
  MergeRounds rounds = rounds_of_eight(*backend);
  const auto sizes = [&](Index target) {
    const MergeRounds::LastRound last = rounds.last_round(target);
    return std::vector<Index>{last.entries.size(), last.groups.size(), last.rounds};
  };
  CHECK(sizes(7) == std::vector<Index>{8, 7, 1});
  CHECK(sizes(4) == std::vector<Index>{8, 4, 1});  // a whole round, but the last
  CHECK(rounds.leads_to(5));
  CHECK(sizes(3) == std::vector<Index>{4, 3, 2});
  CHECK(rounds.leads_to(2));
  CHECK_FALSE(rounds.leads_to(4));
  CHECK(sizes(2) == std::vector<Index>{4, 2, 2});
  CHECK(sizes(1) == std::vector<Index>{2, 1, 3});
}

TEST_CASE("what is spent are the links of each state and the whole rounds between them, once") {
  const auto backend = make_ref_backend();
  const auto flops = [&](auto work) {
    const double before = backend->cost().flops;
    work();
    return backend->cost().flops - before;
  };
  MergedEntries entries = rounds_of_eight(*backend).last_round(7).entries;
  double links_of_eight = 0, round = 0, links_of_four = 0;
  std::vector<MergeLink> links;
  links_of_eight = flops([&] { links = merge_links(rule, entries.keys, *backend); });
  round = flops([&] { entries = merge_entries(rule, entries, merge_groups(rule, links, 8, 4), *backend); });
  links_of_four = flops([&] { merge_links(rule, entries.keys, *backend); });
  REQUIRE(links_of_four > 0);

  MergeRounds rounds = rounds_of_eight(*backend);
  rounds.last_round(6);
  CHECK(rounds.spent().flops == links_of_eight);
  rounds.last_round(5);
  CHECK(rounds.spent().flops == links_of_eight);
  rounds.last_round(3);
  CHECK(rounds.spent().flops == links_of_eight + round + links_of_four);
  // Again: the groups' means are the cache's own to make.
  CHECK(flops([&] { rounds.last_round(3); }) == 0);
}

TEST_CASE("links that are known are not searched again, and numbers of rounds go on") {
  const auto backend = make_ref_backend();
  const MergedEntries entries = entries_of(small_head({1, 2, 1, 3, 2, 1, 1, 1}, 8), *backend);
  MergeRounds rounds(rule, halves, entries, merge_links(rule, entries.keys, *backend), 5, *backend);
  const double before = backend->cost().flops;
  CHECK(rounds.last_round(6).rounds == 6);
  CHECK(backend->cost().flops == before);
}
