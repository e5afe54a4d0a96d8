// SPDX-License-Identifier: Apache-2.0
// Entries of budgets that nest: what a budget takes beside the next smaller one stands in a table of its own, and every larger
// budget returns that table too. The harness sees that several sets hold the same table and answers it once.
#pragma once

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench {

/// For `counts` k_0 >= k_1 >= ... >= 0 of each row: room for what is among the best k_s but not among the best k_{s+1} (0 after
/// the last), [rows, k_s - k_{s+1}].
std::vector<Buffer<std::int32_t>> level_buffers(Index rows, std::span<const Index> counts, Backend& backend);

/// The best columns of each row of `scores` [R, n] by level, as TopK fills `ids`. Only the scan for the largest count is
/// charged to the budget at hand, by way of `memo`, which may be null.
void best_by_level(const Buffer<const float>& scores, const Buffer<const std::int32_t>& first,
                   const Buffer<const std::int32_t>& last, std::span<const Index> counts,
                   std::span<const Buffer<std::int32_t>> levels, BlockMemo* memo, Backend& backend);

/// The same in buffers of its own. A single count is looked for among what a larger one found, as best_columns() does.
std::vector<Buffer<const std::int32_t>> best_by_level(const QueryBlock& queries, const Buffer<const float>& scores,
                                                      const Buffer<const std::int32_t>& first,
                                                      const Buffer<const std::int32_t>& last, std::span<const Index> counts,
                                                      Backend& backend);

/// The tables of `budget` for a block of queries. `make(budgets)` returns one for each of these falling budgets, what it takes
/// and the next one does not; together they must be what each budget would return alone. `nests(largest)` says whether that is
/// possible where the largest budget is this one; where not, and where nobody shares tables, make() sees `budget` alone.
template <class Nests, class F>
EntryTables nested_tables(const QueryBlock& queries, Index budget, Backend& backend, Nests nests, F make) {
  struct ByLevel {
    std::vector<EntryTable> tables;
  };
  EntryTables tables;
  const auto take = [&](std::span<const EntryTable> levels) {
    std::ranges::copy_if(levels, std::back_inserter(tables), [](const EntryTable& level) { return level.ids.cols() > 0; });
  };
  const std::span<const Index> budgets = queries.memo == nullptr ? std::span<const Index>{} : queries.memo->budgets();
  const auto at = std::ranges::find(budgets, budget) - budgets.begin();
  if (at == std::ssize(budgets) || !nests(budgets.front())) {
    take(make(std::span(&budget, 1)));
  } else {
    const auto& levels = queries.memo->get<ByLevel>(backend, [&] { return ByLevel{make(budgets)}; }).tables;
    take(std::span(levels).subspan(static_cast<std::size_t>(at)));
  }
  return tables;
}

/// The same for budgets that always nest.
template <class F>
EntryTables nested_tables(const QueryBlock& queries, Index budget, Backend& backend, F make) {
  const auto always = [](Index) { return true; };
  return nested_tables(queries, budget, backend, always, make);
}

}  // namespace kvbench
