// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/walked_blocks.hpp>

#include <algorithm>
#include <bit>

namespace kvbench {

void WalkedBlocks::start(std::uint32_t seed) {
  if (seed_ != seed) known_.clear();
  seed_ = seed;
}

SignedBlocks WalkedBlocks::sign(const WeightedTokens& list, Index block, const std::vector<std::int32_t>& given,
                                const Walk& walk, Backend& backend) {
  const std::vector<std::int32_t> starts = block_starts(std::ssize(list.ids), block);
  std::vector<Key> keys;
  std::vector<std::pair<Key, WeightedTokens>> whole, rest;  // unknown ones
  Spent spared;
  for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
    const WeightedTokens tokens = list.part(starts[b], starts[b + 1]);
    Key key = given;
    key.insert(key.end(), tokens.ids.begin(), tokens.ids.end());
    for (const float weight : tokens.weights) key.push_back(std::bit_cast<std::int32_t>(weight));
    keys.push_back(key);
    if (const auto found = known_.find(key); found != known_.end()) {
      spared.seconds += found->second.spent.seconds;
      spared.flops += found->second.spent.flops;
    } else {
      (std::ssize(tokens.ids) == block ? whole : rest).emplace_back(std::move(key), tokens);
    }
  }
  const bool some_known = whole.size() + rest.size() < keys.size();
  walk_new(whole, walk, backend);
  walk_new(rest, walk, backend);
  SignedBlocks all;
  for (std::size_t b = 0; b < keys.size(); ++b) {
    const Block& known = known_.at(keys[b]);
    all.signs.insert(all.signs.end(), known.signs.begin(), known.signs.end());
    all.events.push_back(known.events);
    // Alone, all whole blocks would have been in memory together.
    if (some_known && starts[b + 1] - starts[b] == block) spared.peak_bytes += known.spent.peak_bytes;
  }
  spare(spared);
  return all;
}

void WalkedBlocks::walk_new(const std::vector<std::pair<Key, WeightedTokens>>& blocks, const Walk& walk, Backend& backend) {
  if (blocks.empty()) return;
  WeightedTokens tokens;
  std::vector<std::int32_t> starts = {0};
  for (const auto& [key, own] : blocks) {
    tokens.ids.insert(tokens.ids.end(), own.ids.begin(), own.ids.end());
    tokens.weights.insert(tokens.weights.end(), own.weights.begin(), own.weights.end());
    starts.push_back(static_cast<std::int32_t>(tokens.ids.size()));
  }
  SignedBlocks walked;
  const Spent spent = measured(backend, [&] { walked = walk(tokens, starts); });
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const auto begin = walked.signs.begin();
    known_[blocks[b].first] = {.signs = {begin + starts[b], begin + starts[b + 1]},
                               .events = walked.events[b],
                               .spent = part_of(spent, 1, std::ssize(blocks))};
  }
}

}  // namespace kvbench
