// SPDX-License-Identifier: Apache-2.0
// The cache of `chelsea`, `bsm` and `mesh`: sinks, a middle that rounds of merging keep within the budget, recent
// tokens.
#pragma once

#include <algorithm>
#include <optional>

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/merging/merge_rounds.hpp>

namespace kvbench::methods {

struct MergingParams {
  Index sinks = 16;
  Index recent = 64;
  Index slack = 128;
  MergeSchedule schedule;
};
void fields(ParamVisitor& visitor, MergingParams& params);
/// The parameter `order` of bipartite matching.
void fields(ParamVisitor& visitor, MergeRule::Order& order);

/// Sizes of the parts of a cache at a budget of B >= 1. Sinks and recent tokens are never merged.
struct MergingParts {
  Index sinks = 0, recent = 0;
  Index slack = 0;  ///< when decoding overflows B, rounds bring the cache to B - slack
};
/// At most a quarter of B is used for sinks and at most half of B for recent tokens, which leaves a quarter for merged
/// entries; with the defaults this limit applies below B = 128. The slack is at most half of the middle, which one
/// round can free; with the defaults this limit applies below B = 336.
MergingParts merging_parts(const MergingParams& params, Index budget);

/// A context with the merge rounds on its middle. Budgets with equal numbers of sinks and recent tokens share the
/// rounds.
class ContextRounds {
 public:
  ContextRounds(const HeadPrompt& head, const MergeRule& rule, const MergingParams& params, Backend& backend)
      : head_(head), rule_(rule), params_(params), backend_(backend) {}

  /// The rounds on the middle, the tokens between the sinks and the recent tokens of `parts`.
  MergeRounds& rounds(const MergingParts& parts);

  const HeadPrompt& head() const { return head_; }
  const MergeRule& rule() const { return rule_; }
  const MergingParams& params() const { return params_; }
  Backend& backend() const { return backend_; }

 private:
  HeadPrompt head_;
  MergeRule rule_;
  MergingParams params_;
  Backend& backend_;
  std::optional<MergeRounds> rounds_;
  MergingParts parts_;  ///< of rounds_
};

class MergingCache : public CompressedCache {
 public:
  MergingCache(ContextRounds& context, Index budget);

  Index takes(const TokenBlock& tokens) override { return std::clamp<Index>(budget_ - size(), 1, tokens.size()); }
  void append(const TokenBlock& tokens) override;
  EntryTables entries(const QueryBlock& queries) const override;
  Footprint footprint() const override;
  Protected protected_tokens() const override { return fixed_; }

 private:
  Index size() const { return static_cast<Index>(ids_.size()); }
  void hold_all(const MergedEntries& whole);
  void hold(const MergedEntries& whole, const MergeRounds::LastRound& last);
  void reserve(Index rows);
  void refresh_merged();

  Backend& backend_;
  MergeRule rule_;
  MergeSchedule schedule_;
  MergingParts parts_;
  Index budget_;
  Index tokens_;          ///< of the stream so far
  Index rounds_ = 0;      ///< run so far
  Buffer<float> keys_;    ///< [capacity, d] in cache order, rows in use: size()
  Buffer<float> values_;  ///< [capacity, dv]
  /// of the B token of each merged group; all of its tokens were visible when it was formed
  std::vector<TokenId> ids_;
  std::vector<float> degrees_;
  EntryTable merged_;  ///< entries of more than one token; absent ids: none
  Protected fixed_;
};

/// The properties of all methods that return this cache.
Properties merging_properties();

/// The prepare function of methods for single heads that consist of this cache.
MakeCache prepare_merging(const HeadPrompt& head, const MergeRule& rule, const MergingParams& params, Backend& backend);

}  // namespace kvbench::methods
