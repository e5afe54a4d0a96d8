// SPDX-License-Identifier: Apache-2.0
// lagkv@kvpress: the tokens that fill the ranges of the next 128 tokens most unevenly, as many of each part of 128
// tokens. LagKV, arXiv 2504.04704; LagKVPress of kvpress 0.5.4 with cross_scoring=False.
//
// Behind the sinks the context is cut into parts. The scores of keys and of values (lag_scores.hpp) are added, and a
// token's rank within its part, divided by the tokens of a part, decides. The last whole part and the rest behind it
// are kept, and count in the budget.
// Parameters: sinks, default 4; lag: tokens of a part, default 128.
// Complexity: O(n d^2 + n log n) once for all budgets, at d = 128 about 2.5 exact passes of 256 queries, because a
// projection in fp64 scales the channels; O(B d) per query. Memory: B (d + dv) numbers.
// Deviations: a channel without a range is NaN in the code and 0 here. Ranks and ties are those of an unstable sort in
// the code; here the lower token wins. Where the budget does not hold sinks and tail, the last tokens are kept. As in
// the code, contexts of fewer than sinks + 2 lag tokens keep sinks and the last tokens.
#include <algorithm>

#include <kvbench/methods/eviction/lag_scores.hpp>
#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/stages/score_only.hpp>

namespace kvbench::methods {

struct LagkvKvpressParams : SelectionParams {
  LagkvKvpressParams() { sinks = 4; }
  Index lag = 128;
};
void fields(ParamVisitor& visitor, LagkvKvpressParams& params) {
  visitor.integer("sinks", params.sinks, {.min = 0}, "first tokens that are always kept");
  visitor.integer("lag", params.lag, {.min = 1}, "tokens of a part; the last whole part and the rest are kept");
}

MethodInfo lagkv_kvpress_method() {
  return score_only<LagkvKvpressParams>(
      {.name = "lagkv@kvpress",
       .paper = "NVIDIA kvpress, LagKVPress; after LagKV, arXiv 2504.04704",
       .summary = "as many tokens of each part, those that fill the ranges of the next part most unevenly",
       .notes = "Ranks within parts of 128 tokens decide; the repository's own rule is `lagkv`.",
       .complexity = {.compress = {"O(n d^2 + n log n)", 1}}},
      [](const HeadPrompt& head, const LagkvKvpressParams& params, Backend& backend) {
        const Index n = head.tokens(), lag = params.lag, sinks = std::min(params.sinks, n), parts = (n - sinks) / lag;
        if (parts < 2) return as_scores(behind(sinks, numbered(n - sinks) / static_cast<double>(n - sinks)), backend);
        const auto part = [&](auto& rows) { return lag_scores(rows.slice(sinks, parts * lag), lag, backend); };
        const TokenNumbers sum = part(head.keys) + part(head.values);
        return as_scores(behind(sinks, ranks_in_blocks(sum, lag) / static_cast<double>(lag)), backend);
      });
}

}  // namespace kvbench::methods
