// SPDX-License-Identifier: Apache-2.0
// The entries of a file for one kv head, and the memory that a deployment needs to hold them.
#pragma once

#include <span>
#include <vector>

#include <kvbench/methods/contract/footprint.hpp>
#include <kvbench/methods/contract/host_table.hpp>

namespace kvbench::replay {

/// The tokens that a table declares as held in one tier, in the trace's token numbers; -1 = unused slot.
struct HeldTokens {
  Index rows = 0;  ///< 0: not declared; 1: for all queries and query heads; otherwise those of the table
  Index width = 0;
  HostView<std::int32_t> ids{};  ///< [rows, width]

  /// The tokens held when row r of the table answers; empty where nothing is declared.
  std::span<const std::int32_t> row(Index r) const;
  /// A token that a row lists twice; -1 where there is none.
  std::int32_t listed_twice() const;
};

struct KeptTable {
  methods::HostTable entries;  ///< in the trace's token numbers
  HeldTokens fast, slow;
  Index meta_bytes = 0;  ///< bytes held beside keys, values and weights

  bool declared() const { return fast.rows > 0 || slow.rows > 0; }
  /// The first entry that is not among the tokens declared as held; -1 where there is none.
  std::int32_t entry_not_held() const;
};

struct KeptHead {
  std::vector<std::int32_t>
      positions;          ///< [m] of the queries that tables by query refer to; may be empty where there are none
  Index first_query = 0;  ///< index in `positions` of the query of row 0 of tables by query
  std::vector<KeptTable> tables;
};

/// The arrays that a deployment holds for the tables and for `decoded` tokens beside them; tokens from number `tokens`
/// on do not exist yet. A table that declares nothing holds its entries; a table by query then holds the full cache on
/// the slow tier, because it may refer to any token. Where the tokens held differ between queries, their largest number
/// counts.
methods::Footprint held_footprint(const KeptHead& head, Index group, Index tokens, Index decoded, Index d, Index dv);

}  // namespace kvbench::replay
