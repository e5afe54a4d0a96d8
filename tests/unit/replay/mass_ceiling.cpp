// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/mass_ceiling.hpp>

#include <doctest/doctest.h>

#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

/// Two query heads over five tokens, of which the first four are the context.
Head head_of_four() {
  Head head;
  head.group = 2;
  head.map.middle = 4;
  return head;
}

/// One query of each query head: masses 1, 16, 4, 2, 8 and 8, 2, 4, 16, 1, of 31.
ExactBlock block_of_two_rows(Backend& backend) {
  std::vector<float> shares;
  for (const double mass : {1, 16, 4, 2, 8, 8, 2, 4, 16, 1}) shares.push_back(static_cast<float>(mass / 31));
  ExactBlock exact;
  exact.block.positions = {4};
  exact.block.scores = backend.adopt(std::vector<float>(10), 2, 5);
  exact.shares = backend.on_host(backend.adopt(std::move(shares), 2, 5));
  return exact;
}

}  // namespace

// Sums over the query heads: 9, 18, 8, 18 in the context and 9 behind it, of 62.
TEST_CASE("the ceiling of mass is that of the largest column sums") {
  const auto backend = make_ref_backend();
  ContextMass mass(head_of_four());
  mass.add(block_of_two_rows(*backend));
  CHECK(mass.ceiling(std::nullopt, 0) == Approx(9.0 / 62));
  CHECK(mass.ceiling(std::nullopt, 1) == Approx(27.0 / 62));
  CHECK(mass.ceiling(std::nullopt, 2) == Approx(45.0 / 62));
  CHECK(mass.ceiling(std::nullopt, 3) == Approx(54.0 / 62));
  CHECK(mass.ceiling(std::nullopt, 4) == Approx(1));
  CHECK(mass.ceiling(0, 1) == Approx(24.0 / 31));  // a set of its own: token 1, and 8 behind the context
  CHECK(mass.ceiling(1, 2) == Approx(25.0 / 31));  // tokens 3 and 0, and 1 behind it
}

TEST_CASE("blocks of queries add up to one ceiling") {
  const auto backend = make_ref_backend();
  ContextMass mass(head_of_four());
  mass.add(block_of_two_rows(*backend));
  ExactBlock other = block_of_two_rows(*backend);
  other.shares = backend->on_host(backend->adopt(std::vector<float>{0, 0, 1, 0, 0, 0, 0, 1, 0, 0}, 2, 5));
  mass.add(other);
  // 9, 18, 70, 18 and 9 of 124: token 2 is now the best.
  CHECK(mass.ceiling(std::nullopt, 1) == Approx(79.0 / 124));
}

TEST_CASE("a ceiling holds for sets that lose tokens of the context, not for sets that gain some") {
  const auto backend = make_ref_backend();
  const auto kept_of = [&](std::vector<std::vector<TokenId>> steps) {
    ShrinkingSets sets(head_of_four());
    for (std::vector<TokenId>& ids : steps) sets.add(host_entries(ids_table(*backend, std::move(ids)), 1, *backend));
    return sets.kept(1);
  };
  CHECK(kept_of({{0, 2}}) == 2);
  CHECK(kept_of({{0, 2, 4}, {2, 4}}) == 2);  // 4 is behind the context
  CHECK(kept_of({{0}, {0, 4}}) == 1);
  CHECK_FALSE(kept_of({{0, 2}, {0, 1}}));
  CHECK_FALSE(kept_of({}));
}

TEST_CASE("a ceiling applies to plain tokens that all queries share") {
  const auto backend = make_ref_backend();
  const auto sets_of = [&](const EntryTables& tables) {
    ShrinkingSets sets(head_of_four());
    sets.add(host_entries(tables, 1, *backend));
    return sets;
  };
  EntryTables weighted = ids_table(*backend, {0, 1});
  weighted[0].weight_num = weighted[0].weight_den = backend->adopt(std::vector<float>{2, 1}, 1, 2);
  CHECK_FALSE(sets_of(weighted).kept(0));
  EntryTables per_query = ids_table(*backend, {0, 1});
  per_query[0].per_query = true;
  CHECK_FALSE(sets_of(per_query).kept(0));
  const EntryTables own = {{.per_head = true, .ids = backend->adopt(std::vector<std::int32_t>{0, 1, 2, -1}, 2, 2)}};
  const ShrinkingSets by_head = sets_of(own);
  CHECK(by_head.per_head());
  CHECK(by_head.kept(0) == 2);
  CHECK(by_head.kept(1) == 1);
}
