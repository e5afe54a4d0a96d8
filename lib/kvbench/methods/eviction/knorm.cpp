// SPDX-License-Identifier: Apache-2.0
// knorm: keeps the tokens whose keys have the smallest norms. It needs neither queries nor attention. L2 norm strategy,
// arXiv 2406.11430, section 3; alessiodevoto/l2compress cache.py, and KnormPress of NVIDIA kvpress 0.5.4.
//
// Parameters: sinks, recent: tokens that are always kept, default 0 as in both codes.
// Complexity: O(n (d + log n)) once for all budgets, O(B d) per query. Memory: B (d + dv) numbers.
// Deviations: the released code leaves layers 0 and 1 whole (its README; --dense-layers 2), and no text of fewer than
// 2048 tokens is compressed; kvpress compresses all layers. Of n tokens and a share r to be dropped l2compress keeps
// ceil(n (1 - r)) and kvpress int(n (1 - r)); a budget here is B tokens. Equal norms: the lower token.
#include <kvbench/methods/eviction/methods.hpp>

#include <kvbench/methods/stages/score_only.hpp>
#include <kvbench/methods/stages/token_numbers.hpp>

namespace kvbench::methods {

MethodInfo knorm_method() {
  return score_only<KvHeadSelection>(
      {.name = "knorm",
       .paper = "L2 norm strategy, arXiv 2406.11430, section 3",
       .summary = "tokens with the shortest keys",
       .notes = "The released code leaves layers 0 and 1 whole (--dense-layers 2); kvpress, whose rule this is, none.",
       .complexity = {.compress = {"O(n (d + log n))", 1}},
       .properties = {.key_shift = Property::no("a shift of the keys changes which are short")}},
      [](const HeadPrompt& head, const KvHeadSelection&, Backend& backend) {
        return as_scores(-norms(head.keys, backend), backend);
      });
}

}  // namespace kvbench::methods
