// SPDX-License-Identifier: Apache-2.0
// Pieces that methods compose: rows moved and multiplied, what a plain subset keeps, and how it answers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <kvbench/methods/stages/draws.hpp>
#include <kvbench/methods/contract/method.hpp>

namespace kvbench {

/// 0, 1, ..., count - 1, shifted by `first`.
std::vector<TokenId> token_range(Index first, Index count);

/// The tokens 0 .. tokens - 1 in random order: by the draw of each token, ties (probability 2^-52) by index.
std::vector<TokenId> random_order(const Draws& draws, Index tokens);
/// The first min(count, tokens) of random_order, in increasing order: what a larger count draws contains them.
std::vector<TokenId> random_tokens(const Draws& draws, Index tokens, Index count);

/// The rows `ids` [k, 1] of `source` [n, c], in this order, as a new buffer [k, c].
Buffer<float> gathered(const Buffer<const float>& source, const Buffer<const std::int32_t>& ids, Backend& backend);
Buffer<float> gathered(const Buffer<const float>& source, std::vector<std::int32_t> ids, Backend& backend);
/// The same, not to be written: rows that follow each other are no copy.
Buffer<const float> rows_at(const Buffer<const float>& source, const std::vector<std::int32_t>& ids, Backend& backend);
/// Copies `source` [k, c] over `out` [k, c]. Either may be a slice, and both may be empty.
void copy_rows(const Buffer<const float>& source, const Buffer<float>& out, Backend& backend);
/// <a[i], b[j]> of a [m, c] and b [n, c] as a new buffer [m, n].
Buffer<float> inner_products(const Buffer<const float>& a, const Buffer<const float>& b, Backend& backend);

/// The k best columns of each row, as TopK fills `ids`. Budgets that share the block look among what a larger k found, so all
/// of them must ask for the same scores and ranges.
Buffer<const std::int32_t> best_columns(const QueryBlock& queries, const Buffer<const float>& scores,
                                        const Buffer<const std::int32_t>& first, const Buffer<const std::int32_t>& last,
                                        Index k, Backend& backend);

/// Weights of the kept tokens; empty: 1. Row-major like the ids.
struct KeptTokens {
  bool per_head = false;               ///< a selection of each query head (L = G), else one for the kv head (L = 1)
  Index rows = 1;                      ///< L
  std::vector<TokenId> ids;            ///< [L, width], -1 = unused slot
  std::vector<float> weight;           ///< [L, width] in both sums; empty: 1
  Protected fixed;                     ///< tokens among them that are kept whatever their score
  std::vector<float> weight_den = {};  ///< [L, width] in the denominator, where it differs; empty: `weight`
  std::vector<Note> notes = {};        ///< about how they were chosen
};

/// A fixed selection of the context, to which decoded tokens are added exactly with weight 1. The cache of most
/// eviction methods (SnapKV, PyramidKV, uniform sampling ...): what was dropped from the prompt is gone, what is generated
/// stays.
class KeptCache : public CompressedCache {
 public:
  /// d, dv and G are those of the head that the tokens belong to.
  KeptCache(Backend& backend, const HeadPrompt& head, KeptTokens kept, bool accumulate_f64 = false);

  Index append(const TokenBlock& tokens) override;
  EntryTables entries(const QueryBlock& queries) const override;
  Footprint footprint() const override;
  Protected protected_tokens() const override { return fixed_; }
  std::vector<Note> notes() const override { return notes_; }

 private:
  Backend& backend_;
  EntryTable context_;
  Index d_, dv_, context_tokens_;
  Index held_ = 0;  ///< slots in use, over all rows
  Index appended_ = 0;
  Index weights_ = 1;  ///< of a token, where there are any: one for both sums, or two
  bool accumulate_f64_;
  Protected fixed_;
  std::vector<Note> notes_;
};

/// A Prepared that is nothing but its make(): for methods that compute no more once than the function holds.
using MakeCache = std::function<std::unique_ptr<CompressedCache>(Index budget, std::uint32_t seed)>;
std::shared_ptr<const Prepared> prepared(MakeCache make);

/// The array of keys and the array of values that hold `rows` kept tokens.
Footprint kept_footprint(Index rows, Index d, Index dv);

}  // namespace kvbench
