// SPDX-License-Identifier: Apache-2.0
// Score-only methods whose tokens compete in blocks, as BlockPress of kvpress: of the tokens that compete the first
// ones are held, as many as the budget allows, and each block of the next ones competes with those that are held.
#pragma once

#include <functional>
#include <utility>

#include <kvbench/methods/stages/score_only.hpp>

namespace kvbench::methods {

/// `score` sees a head whose keys and values are those of the competing tokens alone, and returns [1, their number].
MakeCache keep_best_in_blocks(const HeadPrompt& head, std::function<Buffer<const float>(const HeadPrompt&)> score,
                              const SelectionParams& params, Index block, Backend& backend);

/// A method of score_only() with this score, whose tokens compete in blocks where params.block > 0. Its scores then
/// depend on the budget, so that wrappers cannot select by them.
template <class P>
MethodInfo in_blocks(MethodInfo info, Buffer<const float> (*score)(const HeadPrompt&, const P&, Backend&)) {
  info.prepare = [at_once = info.prepare, score](std::span<const HeadPrompt> heads, const Params& params,
                                                 Backend& backend) {
    const P& own = params.as<P>();
    if (own.block == 0) return at_once(heads, params, backend);
    std::vector<MakeCache> caches;
    for (const HeadPrompt& head : heads) {
      const auto of_part = [score, params, &backend](const HeadPrompt& part) {
        return score(part, params.as<P>(), backend);
      };
      caches.push_back(keep_best_in_blocks(head, of_part, own, own.block, backend));
    }
    return each_head(std::move(caches));
  };
  info.scores = [at_once = info.scores, name = info.name](std::span<const HeadPrompt> heads, const Params& params,
                                                          Backend& backend) {
    if (params.as<P>().block > 0)
      throw Infeasible(name + "[block > 0] scores tokens anew at every budget; a wrapper needs block=0");
    return at_once(heads, params, backend);
  };
  return info;
}

}  // namespace kvbench::methods
