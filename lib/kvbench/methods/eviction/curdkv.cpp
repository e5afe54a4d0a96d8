// SPDX-License-Identifier: Apache-2.0
// curdkv: keeps the tokens with the largest product of approximate leverage scores of key and value, which are their
// squared norms as shares of neighbouring tokens. CurDKV, arXiv 2509.15038, section 4; CURPress of kvpress 0.5.4.
//
// Parameters, all as in CURPress:
//   window     w, tokens, default 16: |k|^2 and |v|^2 are divided by their sums over disjoint blocks of w tokens
//   leverage   product (default): of both shares | mean | key | value; divided by the sum over the tokens of the head
//   sinks      first tokens that are always kept, default 4; recent: last ones, default 0
// Complexity: O(n (d + dv + log n)) once for all budgets, O(B d) per query. Memory: B (d + dv) numbers.
// Deviations: the paper projects keys and values to random directions first, CURPress on request alone, this method
// never. A block of zeros, 0 / 0 in the code, has shares 0. Equal scores: the lower token.
#include <kvbench/methods/eviction/methods.hpp>
#include <kvbench/methods/stages/score_only.hpp>
#include <kvbench/methods/stages/token_numbers.hpp>

namespace kvbench::methods {

struct CurdkvParams : KvHeadSelection {
  CurdkvParams() { sinks = 4; }
  Index window = 16;
  enum class Leverage { product, mean, key, value } leverage = Leverage::product;
};
void fields(ParamVisitor& visitor, CurdkvParams& params) {
  visitor.integer("window", params.window, {.min = 1}, "tokens of a block, of whose sums the scores are shares");
  visitor.choice("leverage", params.leverage, {"product", "mean", "key", "value"}, "how both shares are combined");
  fields(visitor, static_cast<KvHeadSelection&>(params));
}

MethodInfo curdkv_method() {
  return score_only<CurdkvParams>(
      {.name = "curdkv",
       .paper = "CurDKV, arXiv 2509.15038, section 4",
       .summary = "tokens with the largest product of key and value leverage among their neighbours",
       .notes = "As CURPress of kvpress, whose default leaves out the paper's random projection.",
       .complexity = {.compress = {"O(n (d + dv + log n))", 1}},
       .properties = {.key_shift = Property::no("a shift of the keys changes which are long")}},
      [](const HeadPrompt& head, const CurdkvParams& params, Backend& backend) {
        const TokenNumbers key = shares_in_blocks(norms2(head.keys, backend), params.window);
        const TokenNumbers value = shares_in_blocks(norms2(head.values, backend), params.window);
        const TokenNumbers scores[] = {key * value, key + value, key, value};
        return as_scores(shares_in_blocks(scores[static_cast<std::size_t>(params.leverage)], head.tokens()), backend);
      });
}

}  // namespace kvbench::methods
