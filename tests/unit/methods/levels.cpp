// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/levels.hpp>

#include <doctest/doctest.h>

using namespace kvbench;

namespace {

using Ids = std::vector<std::int32_t>;

struct TwoRows {
  std::unique_ptr<Backend> backend = make_ref_backend();
  Buffer<float> scores = backend->adopt(std::vector<float>{5, 9, 7, 1, 8, 6,   // best to worst: 1 4 2 5 0 3
                                                           1, 2, 3, 4, 5, 6},  // 4 3 2 1, as column 5 lies outside
                                        2, 6);
  Buffer<const std::int32_t> first = backend->adopt(Ids{0, 1}, 2), last = backend->adopt(Ids{6, 5}, 2);

  static QueryBlock block(std::vector<Index> budgets) {
    QueryBlock block;
    block.memo = std::make_shared<BlockMemo>(std::move(budgets));
    return block;
  }
  std::vector<Buffer<const std::int32_t>> levels(const QueryBlock& block, std::vector<Index> counts) {
    return best_by_level(block, scores, first, last, counts, *backend);
  }
  /// Table of the columns of one budget, or what it takes beside the next: [2, k].
  std::vector<EntryTable> tables(const QueryBlock& block, std::span<const Index> budgets) {
    std::vector<EntryTable> tables;
    for (const auto& ids : best_by_level(block, scores, first, last, budgets, *backend)) {
      tables.push_back({.per_query = true, .ids = ids});
    }
    return tables;
  }
};

}  // namespace

TEST_CASE("best columns by level: each level holds what the next smaller count does not") {
  TwoRows t;
  const auto levels = t.levels(TwoRows::block({5, 3, 2}), {5, 3, 2});
  REQUIRE(levels.size() == 3);
  CHECK(t.backend->read(levels[0]) == Ids{0, 5, 1, -1});  // of the second row only four compete
  CHECK(t.backend->read(levels[1]) == Ids{2, 2});
  CHECK(t.backend->read(levels[2]) == Ids{1, 4, 3, 4});
}

TEST_CASE("levels of equal counts are empty, and a count of 0 takes nothing") {
  TwoRows t;
  const auto levels = t.levels(TwoRows::block({3, 3, 1, 1}), {2, 2, 0, 0});
  REQUIRE(levels.size() == 4);
  CHECK(levels[0].cols() == 0);
  CHECK(t.backend->read(levels[1]) == Ids{1, 4, 3, 4});
  CHECK(levels[2].cols() == 0);
  CHECK(levels[3].cols() == 0);
}

TEST_CASE("budgets that share a block return the same buffers, and are charged as if alone") {
  TwoRows t;
  const auto answer = [&](const QueryBlock& block, Index budget, bool nests) {
    const double before = t.backend->cost().flops;
    const auto make = [&](std::span<const Index> budgets) { return t.tables(block, budgets); };
    EntryTables tables = nested_tables(
        block, budget, *t.backend, [&](Index) { return nests; }, make);
    const double saved = block.memo == nullptr ? 0 : block.memo->take_saved_flops();
    return std::pair(std::move(tables), t.backend->cost().flops - before + saved);
  };
  const auto [alone, flops] = answer({}, 3, true);
  REQUIRE(alone.size() == 1);
  CHECK(t.backend->read(alone[0].ids) == Ids{1, 2, 4, 2, 3, 4});

  const QueryBlock block = TwoRows::block({5, 3, 2});
  const auto largest = answer(block, 5, true), middle = answer(block, 3, true), smallest = answer(block, 2, true);
  REQUIRE(largest.first.size() == 3);
  REQUIRE(middle.first.size() == 2);
  REQUIRE(smallest.first.size() == 1);
  CHECK(middle.first[0].ids.same_as(largest.first[1].ids));
  CHECK(smallest.first[0].ids.same_as(largest.first[2].ids));
  for (const auto& [tables, charged] : {largest, middle, smallest}) CHECK(charged == flops);

  const QueryBlock other = TwoRows::block({5, 3});
  const auto unshared = answer(other, 3, false);  // budgets that do not nest
  REQUIRE(unshared.first.size() == 1);
  CHECK(t.backend->read(unshared.first[0].ids) == Ids{1, 2, 4, 2, 3, 4});
}
