// SPDX-License-Identifier: Apache-2.0
// The cache of most eviction and sampling methods: a fixed selection of the context, to which decoded tokens are added
// exactly. No decoded token is dropped.
#pragma once

#include <string>
#include <vector>

#include <kvbench/methods/contract/method.hpp>

namespace kvbench::methods {

/// The tokens of a context that are kept.
struct KeptTokens {
  bool per_head = false;               ///< one selection per query head (L = G), otherwise one for the kv head (L = 1)
  Index rows = 1;                      ///< L
  std::vector<TokenId> ids;            ///< [L, width], -1 = unused slot
  std::vector<float> weight = {};      ///< [L, width] in both sums; empty: 1
  Protected fixed = {};                ///< tokens among them that are always kept
  std::vector<float> weight_den = {};  ///< [L, width] in the denominator; empty: `weight`
  std::vector<Note> notes = {};        ///< about the selection
  bool ragged = false;                 ///< the heads of a layer hold different numbers of tokens: each stores its own
};

class KeptCache : public CompressedCache {
 public:
  /// d, dv and G are those of the head that the tokens belong to.
  KeptCache(Backend& backend, const HeadPrompt& head, KeptTokens kept);

  Index takes(const TokenBlock& tokens) override { return tokens.size(); }
  void append(const TokenBlock& tokens) override { appended_ += tokens.size(); }
  EntryTables entries(const QueryBlock& queries) const override;
  Footprint footprint() const override;
  Protected protected_tokens() const override { return fixed_; }
  std::vector<Note> notes() const override { return notes_; }

 private:
  Backend& backend_;
  EntryTable context_;
  Index d_, dv_, context_tokens_, window_;
  Index held_ = 0;  ///< slots in use, over all rows
  Index appended_ = 0;
  Index weights_ = 1;  ///< weights stored per token, if any: one for both sums, or one for each
  bool ragged_;
  Protected fixed_;
  std::vector<Note> notes_;
};

/// The array of keys and the array of values that hold `rows` kept tokens.
Footprint kept_footprint(Index rows, Index d, Index dv);
/// The arrays of keys and values in slow memory of which a query reads the rows of its entries. Their names begin with
/// `of`, such as "clustered ".
Footprint retrieved_footprint(Index rows, Index d, Index dv, const std::string& of = "");
/// The numbers of the tokens that were chosen for a query, `rows` over all its query heads, each read with its entry.
FootprintArray chosen_tokens(Index rows);
/// Adds a table of the entries of `count` tokens from `first` on, whose rows every query reads; none of no tokens.
void add_resident(Index first, Index count, Backend& backend, EntryTables& tables);

}  // namespace kvbench::methods
