// SPDX-License-Identifier: Apache-2.0
// How a compressed cache answers: weighted entries, z(q) = sum of wN exp(<q,k> scale) v / sum of wD exp(<q,k> scale).
#pragma once

#include <cstdint>
#include <vector>

#include <kvbench/kernels/buffer.hpp>

namespace kvbench::methods {

/// Where the rows of entries lie, for the bytes that a query reads. `retrieved`: in the arrays that are read with
/// entries; `resident`: in arrays that every query reads; `estimated`: in those that are read with estimates.
enum class Place { retrieved, resident, estimated };

/// A table of entries with L rows of equal width, L = (per_head ? G : 1) * (per_query ? m : 1); table_row() says which
/// row answers query head g at query i. The entries of a query are the union of its rows over all tables that a cache
/// returned. Slots whose token lies outside the causal mask of the query are skipped.
struct EntryTable {
  bool per_head = false;
  bool per_query = false;
  Place place = Place::retrieved;
  Buffer<const std::int32_t> ids;  ///< [L, width] token that the entry is or represents; -1 = unused slot
  Buffer<const float> weight_num;  ///< [L, width] wN >= 0; absent: 1
  Buffer<const float> weight_den;  ///< [L, width] wD; absent: 1. Negative only where there is a range
  Buffer<const float> own_keys;    ///< [L*width, d] keys of merged or quantised entries; absent: the tokens' keys
  Buffer<const float> own_values;  ///< [L*width, dv] the same for the values
  /// [tokens so far, d] keys by token that the slots without own keys read; absent: the exact ones. A full cache in
  /// fewer bits, or rows that stand for their tokens, as the means of retroinfer do.
  Buffer<const float> token_keys;
  Buffer<const float> token_values;  ///< [tokens so far, dv] the same for the values
  /// [G*m, d] the queries as they are multiplied by the keys of these entries, of engines that round them; absent: the
  /// exact ones.
  Buffer<const float> queries;
  bool rounded = false;  ///< own rows and rows by token are those of the tokens in fewer bits: no entry is merged
  /// [2, dv] the least and the largest output of each channel, to which answers are clamped (clamp_outputs()); absent:
  /// not clamped. Answers are means of values where no weight is negative; where weights are, this bounds what a
  /// denominator near zero gives.
  Buffer<const float> range;
  Buffer<const std::int32_t>
      cluster_ids;  ///< [L, width] cluster or page of an entry, constant over the life of the cache;
                    ///< -1 = none; absent: no clusters. Input of the metrics cache_hit_*
};
using EntryTables = std::vector<EntryTable>;

/// Number of rows of a table for G query heads and m queries.
template <class Table>
Index table_rows(const Table& table, Index group, Index queries) {
  return (table.per_head ? group : 1) * (table.per_query ? queries : 1);
}
/// The row of a table that answers query head g at query i of m.
template <class Table>
Index table_row(const Table& table, Index g, Index i, Index queries) {
  return (table.per_head ? g : 0) * (table.per_query ? queries : 1) + (table.per_query ? i : 0);
}

}  // namespace kvbench::methods
