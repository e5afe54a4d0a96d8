// SPDX-License-Identifier: Apache-2.0
// Decoding: blocks of any size give the results of single tokens, and no future token is used.
#include <kvbench/testing/properties.hpp>

namespace kvbench::testing {
namespace {

using Decoded = std::vector<std::vector<Result>>;

void require_same(const Decoded& single, const Decoded& blocks) {
  for (std::size_t h = 0; h < single.size(); ++h) {
    require(single[h].size() == blocks[h].size(), "{} of {} decoded tokens are answered", blocks[h].size(),
            single[h].size());
    for (std::size_t i = 0; i < single[h].size(); ++i) {
      const bool same = single[h][i].entries == blocks[h][i].entries &&
                        max_difference(single[h][i].answers, blocks[h][i].answers) < 1e-5;
      require(same,
              "decoded token {} has another result in a block than alone; takes() counts only as many tokens as the "
              "state after them answers",
              i);
    }
  }
}

/// Absent (no heads) where the method refuses the budget.
Decoded decoded_in(Index block, const Heads& heads, Index budget, Trial& trial) {
  const Instance instance = trial.try_open(heads, budget);
  return instance.session ? trial.decode(instance, heads, block) : Decoded{};
}

void require_blocks(const Heads& heads, Index budget, std::initializer_list<Index> blocks, Trial& trial) {
  const Decoded single = decoded_in(1, heads, budget, trial);
  for (const Index block : blocks) require_same(single, decoded_in(block, heads, budget, trial));
  for (const auto& head : single) require_finite(head);
}

}  // namespace

std::string blocks_are_tokens(Trial& trial) {
  const Heads heads = trial.heads();
  for (const Index budget : {3, 24, 40, 55}) require_blocks(heads, budget, {4, 100}, trial);
  return {};
}

std::string streams_start_empty(Trial& trial) {
  if (!trial.info().streaming) return "it does not declare `streaming`";
  trial.describe("an empty context");
  const Heads heads = trial.heads({.n = 0, .decoded = 40});
  for (const Index budget : {2, 16, 60}) {
    const Instance untouched = trial.try_open(heads, budget);
    if (untouched.session) require_finite(trial.prefill(untouched, heads));
    require_blocks(heads, budget, {7}, trial);
  }
  return {};
}

}  // namespace kvbench::testing
