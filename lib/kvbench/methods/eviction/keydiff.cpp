// SPDX-License-Identifier: Apache-2.0
// keydiff: keeps the tokens whose keys differ most from the mean direction of all keys: score -cos(k, anchor), anchor =
// mean of k / |k| over the tokens that compete. KeyDiff, arXiv 2504.15364, section 3; KeyDiffPress and BlockPress of
// NVIDIA kvpress 0.5.4 (no other code is released).
//
// Parameters: block: 0 (default): all tokens compete at once, as in KeyDiffPress alone. Else, as in the paper's blocks
// of the prompt, the first B tokens are held, and each block of so many next ones competes with those that are held;
// anchor and scores are those of the competing tokens. BlockPress has 128. sinks, recent: tokens always kept, 0.
// Complexity: O(n (d + log n)) once for all budgets; block > 0: O((n - B) (1 + B / block) d) per budget, at n = 32768,
// B = n / 4 and block=128 9 exact passes of 256 queries, as each block compares all B tokens anew. Memory: B (d + dv)
// numbers.
// Deviations: as in kvpress every layer attends to its whole prompt before blocks compete, where the paper computes
// blocks with the compressed cache; decoded tokens are kept, where the paper's evict. Equal scores: the lower token.
#include <algorithm>

#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/stages/rows.hpp>
#include <kvbench/methods/stages/score_only.hpp>
#include <kvbench/methods/stages/token_numbers.hpp>

namespace kvbench::methods {
namespace {

struct KeydiffParams : KvHeadSelection {
  Index block = 0;
};
void fields(ParamVisitor& visitor, KeydiffParams& params) {
  visitor.integer("block", params.block, {.min = 0}, "tokens that compete at a time with those held; 0: all at once");
  fields(visitor, static_cast<KvHeadSelection&>(params));
}
Buffer<const float> keydiff_score(const HeadPrompt& head, const KeydiffParams&, Backend& backend) {
  return as_scores(-cosines_with_mean(head.keys, backend), backend);
}

/// Of the tokens that compete the first ones are held, as many as the budget allows, and each block of the next ones
/// competes with those that are held.
MakeCache keep_best_in_blocks(const HeadPrompt& head, const KeydiffParams& params, Backend& backend) {
  return [head, params, &backend](Index budget, std::uint32_t) {
    const Index n = head.tokens(), recent = std::min(params.recent, n), first = std::min(params.sinks, n - recent);
    const Index last = n - recent, count = std::clamp<Index>(budget - recent - first, 0, last - first);
    std::vector<TokenId> held = token_range(first, count);
    for (Index next = first + count; count > 0 && next < last; next += params.block) {
      const std::vector<TokenId> newer = token_range(next, std::min(params.block, last - next));
      held.insert(held.end(), newer.begin(), newer.end());
      HeadPrompt part = head;
      part.keys = gathered(head.keys, held, backend);
      part.values = gathered(head.values, held, backend);
      const Buffer<const float> scores = keydiff_score(part, params, backend);
      std::vector<TokenId> best = backend.read(best_columns(scores, 0, std::ssize(held), count, backend));
      for (TokenId& id : best) id = held[static_cast<std::size_t>(id)];
      held = std::move(best);
    }
    std::vector<float> chosen(static_cast<std::size_t>(n));
    for (const TokenId id : held) chosen[static_cast<std::size_t>(id)] = 1;
    return keep_best(head, token_scores(head, backend.adopt(std::move(chosen), 1, n), params, backend), budget,
                     backend);
  };
}

}  // namespace

MethodInfo keydiff_method() {
  MethodInfo info = score_only<KeydiffParams>(
      {.name = "keydiff",
       .paper = "KeyDiff, arXiv 2504.15364, section 3",
       .summary = "tokens whose keys differ most from the mean direction of the keys",
       .notes = "Paper: blocks of the prompt compete (block=128, BlockPress of kvpress); KeyDiffPress: all at once.",
       .complexity = {.compress = {"O(n (d + log n))", 1}},
       .properties = {.key_shift = Property::no("a shift of the keys changes their directions"),
                      .nested_budgets = Property::no("block > 0: which tokens compete depends on the budget")}},
      keydiff_score);
  info.prepare = [at_once = info.prepare](std::span<const HeadPrompt> heads, const Params& params, Backend& backend) {
    const auto& own = params.as<KeydiffParams>();
    if (own.block == 0) return at_once(heads, params, backend);
    std::vector<MakeCache> caches;
    for (const HeadPrompt& head : heads) caches.push_back(keep_best_in_blocks(head, own, backend));
    return each_head(std::move(caches));
  };
  // In blocks scores depend on the budget, so that wrappers cannot select by them.
  info.scores = [at_once = info.scores](std::span<const HeadPrompt> heads, const Params& params, Backend& backend) {
    if (params.as<KeydiffParams>().block > 0)
      throw Infeasible("keydiff[block > 0] scores tokens anew at every budget; a wrapper needs block=0");
    return at_once(heads, params, backend);
  };
  return info;
}

}  // namespace kvbench::methods
