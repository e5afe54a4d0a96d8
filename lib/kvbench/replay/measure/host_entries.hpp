// SPDX-License-Identifier: Apache-2.0
// The entries that answer a run of queries of one head, on the host and in the trace's token numbers.
#pragma once

#include <cstdint>
#include <vector>

#include <kvbench/methods/contract/host_table.hpp>
#include <kvbench/replay/exact/head.hpp>

namespace kvbench::replay {

/// A table and the properties of its slots.
struct ReadTable : methods::HostTable {
  explicit ReadTable(methods::HostTable table);

  std::vector<std::uint8_t>
      plain;             ///< by slot: its own token with unit weights; empty: all slots in use or none, see plain_count
  std::size_t used = 0;  ///< slots in use
  std::size_t plain_count = 0;  ///< plain ones among them
  bool two_sets = false;        ///< numerator and denominator hold different tokens
};

class HostEntries {
 public:
  /// Tables for m = `queries` queries of each query head.
  HostEntries(std::vector<methods::HostTable> tables, Index queries);

  const std::vector<ReadTable>& tables() const { return tables_; }

  /// Calls visit(table, slot) with the first slot of the row of each table that answers query head g at query i.
  template <class F>
  void each_row(Index g, Index i, F visit) const {
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      visit(t, static_cast<std::size_t>(methods::table_row(tables_[t], g, i, queries_) * tables_[t].width));
    }
  }

  /// Calls visit(id, table, slot) for each slot in use of query head g at query i whose id lies in [first, last).
  template <class F>
  void each(Index g, Index i, std::int32_t first, std::int32_t last, F visit) const {
    each_row(g, i, [&](std::size_t t, std::size_t begin) {
      const ReadTable& table = tables_[t];
      for (std::size_t slot = begin; slot < begin + static_cast<std::size_t>(table.width); ++slot) {
        const std::int32_t id = table.ids[slot];
        if (id >= first && id < last) visit(id, t, slot);
      }
    });
  }

  /// The number of slots that each() visits: in all tables, and in those of merged entries.
  struct Count {
    Index all = 0, merged = 0;
  };
  Count count(Index g, Index i, std::int32_t first, std::int32_t last) const;

  /// The entries with ids in [first, last) whose rows query i of all `group` query heads reads: those of a table that
  /// the query heads share once.
  struct RowsRead {
    double retrieved = 0, estimated = 0;
  };
  RowsRead rows_read(Index group, Index i, std::int32_t first, std::int32_t last) const;

  /// Of each token below `tokens`, whether its entry answers the last query of query head g.
  std::vector<bool> held(Index g, Index tokens) const;

  bool two_sets() const { return two_sets_; }          ///< numerator and denominator hold different tokens
  bool has_clusters() const { return has_clusters_; }  ///< some table has ids of clusters or pages
  /// Cluster or page of a slot; -1: none.
  std::int32_t cluster_id(std::size_t table, std::size_t slot) const {
    return tables_[table].cluster_ids.empty() ? -1 : tables_[table].cluster_ids[slot];
  }
  bool all_plain() const { return all_plain_; }  ///< every entry is its own token with unit weights
  bool any_plain() const { return any_plain_; }
  /// Whether every query has all of `tokens` tokens, each plain. No id may occur twice.
  bool complete(Index tokens) const;

  /// The tables reduced to the ids of their plain entries (H in the decomposition of errors); tables without any are
  /// omitted.
  methods::EntryTables plain_part(Backend& backend) const;

 private:
  std::vector<ReadTable> tables_;
  Index queries_;
  bool two_sets_ = false, all_plain_ = true, any_plain_ = false, has_clusters_ = false;
};

/// Number of `ids` in [first, last).
Index count_inside(std::span<const std::int32_t> ids, std::int32_t first, std::int32_t last);

}  // namespace kvbench::replay
