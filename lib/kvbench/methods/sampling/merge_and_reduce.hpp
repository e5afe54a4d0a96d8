// SPDX-License-Identifier: Apache-2.0
// MergeAndReduce (BalanceKV, arXiv 2502.07861, Algorithm 3): SoftmaxBalance over a stream, as a binary counter of
// batches.
#pragma once

#include <vector>

#include <kvbench/methods/sampling/softmax_balance.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {

/// One instance: level l holds tokens of weight 2^l. Every t tokens level 0 is halved into level 1, level i into level
/// i + 1 where tokens / (t 2^i) is a whole number; level T is never reduced.
class MergeAndReduce {
 public:
  struct Settings {
    Index t = 256;
    Index levels = 0;  ///< T
    WalkSettings walk;
    double value_radius = 0;       ///< r_val; 0: v = 1, and no values are stored
    std::uint32_t first_draw = 0;  ///< first draw number of a token; one draw per level
  };
  /// For keys [*, d] and values [*, dv].
  MergeAndReduce(const Settings& settings, Index d, Index dv, Backend& backend);

  /// Adds row `row` of the source as token `id`. The next reduction or flush() copies the row; it must be given the
  /// same source.
  void take(TokenId id, std::int32_t row, const Buffer<const float>& keys, const Buffer<const float>& values,
            const Draws& draws);
  void flush(const Buffer<const float>& keys, const Buffer<const float>& values);

  /// Tokens of each level, 0 .. T, in order of arrival.
  std::vector<std::vector<TokenId>> tokens() const;
  Index held() const;
  Index fails() const { return fails_; }
  Index steps() const { return steps_; }

 private:
  struct Level {
    std::vector<TokenId> ids;
    GrowingRows keys, values;
  };

  bool has_values() const { return settings_.value_radius > 0; }
  void reduce(std::size_t level, const Draws& draws);

  Backend& backend_;
  Settings settings_;
  std::vector<Level> levels_;
  std::vector<std::int32_t> pending_;  ///< source rows of the last tokens of level 0
  Index tokens_ = 0;
  Index fails_ = 0, steps_ = 0;
};

/// Upper bound of the tokens that an instance holds after `tokens` tokens.
Index held_after(Index tokens, Index t, Index levels);
/// Upper bound of the tokens that it holds at any time up to then.
Index held_up_to(Index tokens, Index t, Index levels);

}  // namespace kvbench::methods
