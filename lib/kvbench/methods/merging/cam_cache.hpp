// SPDX-License-Identifier: Apache-2.0
// The cache of `cam`: unchanged first tokens, and a window into whose values the values that leave it are merged.
#pragma once

#include <kvbench/methods/merging/cam_rule.hpp>
#include <kvbench/methods/stages/draws.hpp>

namespace kvbench::methods {

class CamCache : public CompressedCache {
 public:
  CamCache(const HeadPrompt& head, const CamRule& rule, const CamPrompt& prompt, const Draws& draws,
           std::vector<Note> notes, Backend& backend);

  void append(const TokenBlock& tokens) override;
  EntryTables entries(const QueryBlock& queries) const override;
  void observe(const QueryBlock& queries, const EntryTables& entries,
               std::span<const Buffer<const float>> weights) override;
  Footprint footprint() const override;
  Protected protected_tokens() const override { return {.sinks = rule_.start}; }
  std::vector<Note> notes() const override { return notes_; }

 private:
  Index sinks() const { return std::min(rule_.start, tokens_); }
  Index window() const { return std::max<Index>(0, tokens_ - begin_); }
  /// Stored values of a row, of the tokens base_ .. tokens_ - 1.
  Buffer<float> stored(Index row) const { return values_.slice(row * capacity_, std::max<Index>(0, tokens_ - base_)); }

  /// Stores the values of a row's window after all merges of the prompt.
  void take_prompt(const HeadPrompt& head, const CamPrompt& prompt, Index row);
  void make_room();
  void slide() { begin_ = std::max(begin_, tokens_ - rule_.recent); }
  /// For every row: draws whether the value of token i is merged, and if so merges it.
  void merge(Index i);
  bool drawn(Index row, Index i, double chance) const {
    return draws_.uniform(i, static_cast<std::uint32_t>(row)) < chance;
  }
  float share() const { return 1 / static_cast<float>(rule_.divisor); }

  Backend& backend_;
  CamRule rule_;
  Draws draws_;
  std::vector<Note> notes_;
  Index d_, dv_, rows_;
  Gathered attention_;  ///< sums so far; form=decode: attention of the last step
  Index tokens_;        ///< of the stream so far
  Index begin_;         ///< first token of the window
  Index base_;          ///< token of each row's first stored value
  Index capacity_;      ///< stored values per row
  Buffer<float> values_;
  Index slots_;  ///< tokens of the window when the last query was answered
};

}  // namespace kvbench::methods
