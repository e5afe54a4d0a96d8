// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/in_blocks.hpp>

#include <algorithm>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {

MakeCache keep_best_in_blocks(const HeadPrompt& head, std::function<Buffer<const float>(const HeadPrompt&)> score,
                              const SelectionParams& params, Index block, Backend& backend) {
  return [head, score = std::move(score), params, block, &backend](Index budget, std::uint32_t) {
    const Index n = head.tokens(), recent = std::min(params.recent, n), first = std::min(params.sinks, n - recent);
    const Index last = n - recent, count = std::clamp<Index>(budget - recent - first, 0, last - first);
    std::vector<TokenId> held = token_range(first, count);
    for (Index next = first + count; count > 0 && next < last; next += block) {
      const std::vector<TokenId> newer = token_range(next, std::min(block, last - next));
      held.insert(held.end(), newer.begin(), newer.end());
      HeadPrompt part = head;
      part.keys = gathered(head.keys, held, backend);
      part.values = gathered(head.values, held, backend);
      std::vector<TokenId> best = backend.read(best_columns(score(part), 0, std::ssize(held), count, backend));
      for (TokenId& id : best) id = held[static_cast<std::size_t>(id)];
      held = std::move(best);
    }
    std::vector<float> chosen(static_cast<std::size_t>(n));
    for (const TokenId id : held) chosen[static_cast<std::size_t>(id)] = 1;
    return keep_best(head, token_scores(head, backend.adopt(std::move(chosen), 1, n), params, backend), budget,
                     backend);
  };
}

}  // namespace kvbench::methods
