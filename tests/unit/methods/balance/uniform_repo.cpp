// SPDX-License-Identifier: Apache-2.0

#include <doctest/doctest.h>

#include <kvbench/methods/stages/draws.hpp>
#include <support/small.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

std::vector<Entry> kept(const HeadData& head, std::vector<Assignment> settings, Index budget, std::uint32_t seed,
                        Backend& backend) {
  const auto cache = open_cache("uniform-repo", std::move(settings), prompt_of(head, backend), budget, seed, backend);
  const QueryBlock block = query_block(head, head.n, head.n + 1, head.n + 1, backend);
  return visible_entries(head, cache->entries(block), block, backend)[0];
}

}  // namespace

TEST_CASE("uniform-repo keeps the -1 class first, gives +1 to the first of a block, and weights 2^T") {
  const auto backend = make_ref_backend();
  const HeadData head = small_head({0, 0, 0, 0, 0, 0, 0, 0}, 7);
  bool short_class = false, long_class = false;
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    const Draws draws(seed, "uniform-repo", prompt_of(head, *backend));
    Ids minus, plus;
    for (TokenId i = 0; i < 7; ++i) (i % 4 != 0 && draws.uniform(i, 0) >= 0.5 ? minus : plus).push_back(i);
    short_class |= minus.size() < 3;
    long_class |= minus.size() > 3;
    Ids expected = minus;
    expected.insert(expected.end(), plus.begin(), plus.end());
    expected.resize(3);
    std::ranges::sort(expected);

    const auto entries = kept(head, {{"block", "4"}}, 3, seed, *backend);
    CHECK(ids_of(entries) == expected);
    for (const Entry& entry : entries) CHECK((entry.num == 2 && entry.den == 2));
  }
  CHECK(short_class);
  CHECK(long_class);
}

TEST_CASE("uniform-repo keeps floor(n / 2^T) and a window of the rest") {
  const auto backend = make_ref_backend();
  const HeadData head = random_head({.n = 103, .decoded = 1, .group = 1}, 0, *backend);
  CHECK(kept(head, {}, 103, 0, *backend)[0].num == 1);
  const auto entries = kept(head, {}, 30, 1, *backend);  // 6 + 97 / 4
  CHECK(entries.size() == 30);
  double sum = 0;
  for (const Entry& entry : entries) {
    CHECK(entry.num == (entry.id < 97 ? 4 : 1));
    CHECK(entry.num == entry.den);
    sum += double{entry.num};
  }
  CHECK(sum == 24 * 4 + 6);
  CHECK(kept(head, {}, 30, 2, *backend) != entries);
}
