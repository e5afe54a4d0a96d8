// SPDX-License-Identifier: Apache-2.0
// Reservoir: samples with replacement from a weighted stream, one token at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <kvbench/methods/stages/draws.hpp>

namespace kvbench::methods {

/// s slots, each of which holds token i with probability weight_i / (sum of all weights offered so far), independently
/// of the others. SubGen (arXiv 2402.06082) draws its value samples in this way, with weights |v|^2 (Algorithm 1, lines
/// 24-28; Lemma
/// 1) and the samples of each cluster with weights 1 (lines 15-18; Lemma 2 (5)).
///
/// The algorithm flips a coin for each slot at each token: replace with probability weight / total. Here a slot that is
/// filled at total M draws U once and is replaced by the first token at which the total reaches M/U. The distribution
/// is the same: no token up to a later total M' replaces it with probability M/M' = P(U < M/M'). The work is O(s log n)
/// instead of O(s n). A draw is keyed by the slot and the token that filled it, so that results depend only on the
/// order of the tokens, not on how they are cut into blocks.
class Reservoir {
 public:
  struct Slot {
    TokenId token;
    double weight;  ///< of that token
    double next;    ///< the total at which the slot is refilled
    std::uint32_t draw;
  };

  /// Uses the draw numbers first_draw .. first_draw + slots - 1 of each token. slots >= 1.
  Reservoir(Index slots, std::uint32_t first_draw);

  /// Offers the next token of the stream. The weight is finite and >= 0; a token of weight 0 is never held.
  void offer(const Draws& draws, TokenId token, double weight);

  double total() const { return total_; }
  Index size() const { return static_cast<Index>(slots_.size()); }
  /// The slots in no particular order; empty until a token of positive weight has been offered.
  std::span<const Slot> held() const { return total_ > 0 ? std::span<const Slot>(slots_) : std::span<const Slot>(); }

 private:
  std::vector<Slot> slots_;  // heap, least `next` in front
  double total_ = 0;
};

}  // namespace kvbench::methods
