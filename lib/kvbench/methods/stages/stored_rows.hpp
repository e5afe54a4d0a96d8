// SPDX-License-Identifier: Apache-2.0
// The keys or the values of one selection of a cache, as a deployment stores them with a codec.
// What follows from the rule by which a codec encodes the rows of a cache: runs of decoded tokens, and bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <kvbench/methods/contract/codec.hpp>
#include <kvbench/methods/contract/entries.hpp>
#include <kvbench/methods/contract/method.hpp>
#include <kvbench/methods/stages/rows.hpp>
#include <kvbench/methods/stages/token_numbers.hpp>

namespace kvbench::methods {

/// The longest run of decoded tokens, at most `most`, after which the rows that are encoded answer the query of each.
/// The cache holds `held` rows before, of which `context` came with the prompt. `codec` null: all rows are exact.
Index run_of(const Codec* codec, Index context, Index held, Index most);

/// Adds the arrays that hold an array of the cache when its codec stores it: those of the codec, and the rows that are
/// not encoded yet. `exact` of the rows are still to be found in arrays of this kind; those of this one are taken off.
void add_encoded(const FootprintArray& array, const Codec& codec, Index& exact, Footprint& out);

/// Adds what the codec holds once beside the rows of these tokens, which it has encoded.
void add_extras(const Codec& codec, std::span<const std::int32_t> tokens, Content content, Tier tier, Footprint& out);

/// How many of these stored rows have less than half or more than twice the norm of those of their tokens, as where
/// scales of 16 bits underflow, or numbers are clipped. `exact`: norms2() of the rows of all tokens; id -1: a row that
/// is no token's own, which is not counted.
Index count_misfits(const Buffer<const float>& stored, std::span<const std::int32_t> ids, const TokenNumbers& exact,
                    Backend& backend);
/// The notes of a row of results, with one of such rows where there are any.
std::vector<Note> with_misfits(std::vector<Note> notes, Index rows);

/// Which selections a cache stores: one, or one per query head, per query, or both.
struct SelectionScope {
  bool per_head = false, per_query = false;
  Index group = 1, queries = 1;  ///< G, m; the number of selections is the product of those that apply
};
SelectionScope scope_of(const EntryTables& tables, Index group);

/// Slots of a table's row, as a part of a selection.
struct StoredSlots {
  std::size_t table = 0;
  std::vector<std::int32_t> ids;    ///< the tokens of the slots in use
  std::vector<std::int32_t> slots;  ///< their slots in the table
  Index context = 0;                ///< tokens among them that came with the prompt
};
/// One selection, in the order of the cache.
struct Selection {
  std::vector<StoredSlots> parts;
  Index held() const;
  Index context() const;
};
/// The selections of a scope. `tokens`: those of the prompt.
std::vector<Selection> selections_of(const EntryTables& tables, const SelectionScope& scope, Index tokens,
                                     Backend& backend);

/// The rows of tokens that a codec encodes each for itself: once per token, wherever the cache holds it.
class RowsByToken {
 public:
  explicit RowsByToken(Backend& backend) : backend_(&backend), rows_(backend, {}) {}

  /// The decoded rows of these tokens, in this order; `tokens`: the exact rows of all tokens so far.
  Buffer<const float> decoded(const Codec& codec, std::span<const std::int32_t> ids, const Buffer<const float>& tokens);

 private:
  Backend* backend_;
  GrowingRows rows_;                 ///< in the order in which they were encoded
  std::vector<std::int32_t> place_;  ///< by token, its row; -1: it is not encoded
};

class StoredRows {
 public:
  explicit StoredRows(Backend& backend) : backend_(&backend), encoded_(backend, {}) {}

  /// The rows [held, cols] that attention reads. `tokens`: the rows of all tokens so far; `own`: by table, the rows of
  /// its slots where it has rows of its own. Rows of tokens that were encoded before in the same places are not encoded
  /// again; nor are those in other places where Codec::by_row(), which are found in `known_rows`.
  Buffer<const float> update(const Codec& codec, const Selection& selection, const Buffer<const float>& tokens,
                             const std::vector<Buffer<const float>>& own, RowsByToken& known_rows);

  /// count_misfits() of those that are encoded.
  Index misfits(const TokenNumbers& exact) const { return count_misfits(encoded_.rows(), ids_, exact, *backend_); }

 private:
  /// Rows `begin` to `end` of the selection, exact.
  Buffer<float> exact(const Selection& selection, Index begin, Index end, const Buffer<const float>& tokens,
                      const std::vector<Buffer<const float>>& own) const;

  Backend* backend_;
  GrowingRows encoded_;            ///< decoded rows of those that are encoded
  std::vector<std::int32_t> ids_;  ///< their tokens; -1: a row of a table's own
};

}  // namespace kvbench::methods
