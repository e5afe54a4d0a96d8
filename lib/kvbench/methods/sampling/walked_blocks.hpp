// SPDX-License-Identifier: Apache-2.0
// Signs of blocks of tokens, each walked once. Budgets halve more or fewer tokens of a context, more or less often, but a walk
// knows nothing outside its block, and most of their blocks are the same.
#pragma once

#include <functional>
#include <map>
#include <optional>

#include <kvbench/methods/sampling/softmax_balance.hpp>

namespace kvbench {

class WalkedBlocks : public SharesWork {
 public:
  /// Walks over blocks of `tokens` from the places `starts` on.
  using Walk = std::function<SignedBlocks(const WeightedTokens& tokens, std::vector<std::int32_t> starts)>;

  /// Draws change with the seed, and what another one left is dropped.
  void start(std::uint32_t seed);

  /// Signs `list` in blocks of `block`. Those of equal tokens, weights and `given`, which is all else that signs depend on, are
  /// not walked again.
  SignedBlocks sign(const WeightedTokens& list, Index block, const std::vector<std::int32_t>& given, const Walk& walk,
                    Backend& backend);

 private:
  struct Block {
    std::vector<std::int32_t> signs;
    std::int32_t events = 0;
    Spent spent;
  };
  using Key = std::vector<std::int32_t>;

  /// Of equal sizes: then each took an equal part.
  void walk_new(const std::vector<std::pair<Key, WeightedTokens>>& blocks, const Walk& walk, Backend& backend);

  std::optional<std::uint32_t> seed_;
  std::map<Key, Block> known_;
};

}  // namespace kvbench
