// SPDX-License-Identifier: Apache-2.0
// Entry tables as the harness looks at them: in the trace's token numbers, on the host.
#pragma once

#include <memory>
#include <vector>

#include <kvbench/methods/contract/method.hpp>
#include <kvbench/replay/exact/head.hpp>

namespace kvbench {

/// The table in the trace's token numbers.
EntryTable to_global(EntryTable table, const TokenMap& map, Backend& backend);

/// An entry table on the host.
struct HostTable {
  HostTable(const EntryTable& table, Backend& backend);

  bool per_head, per_query;
  bool own;   ///< keys or values of its own
  bool fp64;  ///< summed in fp64
  Index rows, width;
  HostView<std::int32_t> ids;
  HostView<float> num, den;         ///< weights by slot, empty: 1
  HostView<std::int32_t> groups;    ///< by slot, empty: none
  std::vector<std::uint8_t> plain;  ///< by slot: its own token with unit weights; empty: all slots in use are, or none is
  std::size_t used = 0;             ///< slots
  std::size_t plain_count = 0;      ///< of them
  bool two_sets = false;            ///< N and D differ as sets

  bool weighted() const { return !num.empty() || !den.empty(); }
  /// Whether ids increase in each row and unused slots come last.
  bool increases() const;
};

/// The tables that answer one run of queries of a head, of all budgets that share the run. A table that several of them return
/// (the same buffers) is checked, translated and read once.
class TableStore {
 public:
  struct Held {
    EntryTable local, global;
    std::shared_ptr<const HostTable> host;
  };

  const Held& hold(const EntryTable& local, const TokenMap& map, Backend& backend);

  /// Whether these tables are all among those of a set that was found to hold each token once.
  bool found_sound(const EntryTables& tables) const;
  void add_sound(const EntryTables& tables) { sound_.push_back(tables); }

 private:
  std::vector<Held> held_;
  std::vector<EntryTables> sound_;
};

}  // namespace kvbench
