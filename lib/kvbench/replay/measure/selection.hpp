// SPDX-License-Identifier: Apache-2.0
// What tables of entries mean as a set of tokens: counts, the plain part, recall.
#pragma once

#include <kvbench/replay/exact/exact_pass.hpp>
#include <kvbench/replay/answer/host_table.hpp>
#include <kvbench/replay/records/results.hpp>

namespace kvbench {

/// Entry tables on the host, addressed by query.
class HostEntries {
 public:
  using Tables = std::vector<std::shared_ptr<const HostTable>>;

  HostEntries(Tables tables, Index queries);
  HostEntries(const EntryTables& tables, Index queries, Backend& backend);

  const Tables& tables() const { return tables_; }

  /// Calls visit(table, slot) with the first slot of the row of each table that answers query head g at query i.
  template <class F>
  void each_row(Index g, Index i, F visit) const {
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      const HostTable& table = *tables_[t];
      const Index row = (table.per_head ? g : 0) * (table.per_query ? queries_ : 1) + (table.per_query ? i : 0);
      visit(t, static_cast<std::size_t>(row * table.width));
    }
  }

  /// Calls visit(id, table, slot) for each slot in use of query head g at query i whose id lies in [first, last).
  template <class F>
  void each(Index g, Index i, std::int32_t first, std::int32_t last, F visit) const {
    each_row(g, i, [&](std::size_t t, std::size_t begin) {
      const HostTable& table = *tables_[t];
      for (std::size_t slot = begin; slot < begin + static_cast<std::size_t>(table.width); ++slot) {
        const std::int32_t id = table.ids[slot];
        if (id >= first && id < last) visit(id, t, slot);
      }
    });
  }

  /// How many slots each() would visit: in all tables, and in those with keys or values of their own.
  struct Count {
    Index all = 0, own = 0;
  };
  Count count(Index g, Index i, std::int32_t first, std::int32_t last) const;

  bool two_sets() const { return two_sets_; }      ///< N and D differ as sets
  bool has_groups() const { return has_groups_; }  ///< some table numbers clusters or pages
  /// Cluster or page of a slot; -1: none.
  std::int32_t group(std::size_t table, std::size_t slot) const {
    return tables_[table]->groups.empty() ? -1 : tables_[table]->groups[slot];
  }
  bool all_plain() const { return all_plain_; }  ///< every entry is its own token with unit weights
  bool any_plain() const { return any_plain_; }
  /// Every query has all of `tokens` tokens, each plain. No id may occur twice.
  bool complete(Index tokens) const;

  /// The tables of ids reduced to their plain entries (H); tables without any are left out.
  EntryTables plain_part(Backend& backend) const;

 private:
  Tables tables_;
  Index queries_;
  bool two_sets_ = false, all_plain_ = true, any_plain_ = false, has_groups_ = false;
};

/// Tokens over which recall counts: those that the method may drop. Empty: recall does not apply.
struct RecallRange {
  Index first = 0, last = 0;
};

/// Sets recall and mass_recall of query head g at query i of `exact` (the block's own query number).
void set_recall(const HostEntries& entries, ExactBlock& exact, const RecallRange& range, Index g, Index i, Index entries_i,
                Backend& backend, MetricRow& row);

}  // namespace kvbench
