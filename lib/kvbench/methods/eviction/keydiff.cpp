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
#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/stages/in_blocks.hpp>
#include <kvbench/methods/stages/token_numbers.hpp>

namespace kvbench::methods {

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

MethodInfo keydiff_method() {
  MethodInfo info = score_only<KeydiffParams>(
      {.name = "keydiff",
       .paper = "KeyDiff, arXiv 2504.15364, section 3",
       .summary = "tokens whose keys differ most from the mean direction of the keys",
       .notes = "Paper: blocks of the prompt compete (block=128, BlockPress of kvpress); KeyDiffPress: all at once.",
       .complexity = {.compress = "O(n (d + log n))", .growth = {.compress = 1}},
       .properties = {.key_shift = Property::no("a shift of the keys changes their directions"),
                      .nested_budgets = Property::no("block > 0: which tokens compete depends on the budget")}},
      keydiff_score);
  return in_blocks<KeydiffParams>(std::move(info), keydiff_score);
}

}  // namespace kvbench::methods
