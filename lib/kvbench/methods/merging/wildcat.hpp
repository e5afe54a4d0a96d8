// SPDX-License-Identifier: Apache-2.0
// wildcat: a few keys of each bin of tokens stand for all of its keys, with the weights by which they give nearly the
// same exponentials for every query. WildCat: Near-Linear Attention in Theory and Practice, arXiv 2602.10056;
// microsoft/wildcat, wildcat/compresskv.py, compress_kv.py, rp_nystrom.py and
// examples/kvcache/presses/compresskv_press.py. Read: that code in several versions, and the abstract of the paper.
//
// The `sinks` first and `recent` last tokens are kept exactly. Those between are cut into bins of equal size, and what
// is left over joins the recent ones; a budget of B tokens has as many bins as give `rank` tokens each. Within a bin of
// m keys, with k the key minus the mean of all keys of the context, R = max |k| and s the scale of logits:
//   kernel: K(i, j) = exp(s <k_i, k_j> / tau^2), tau^2 = b / (2 W(b / 6.3832)), b = ln m / (s R^2) + 2, W Lambert's
//     function; tau=fixed: tau^2 = 3.94582, of a later version
//   coreset S: `rank` keys by randomly pivoted Cholesky, each drawn in proportion to the diagonal of the residual of K
//   weights W = K_SS^-1 K_S,all. The key of s in S stays, its value becomes that of row s of W V, in the numerator with
//     the weight 1, and its weight in the denominator is the sum of row s of W, which may be negative.
// Answers are clamped, channel by channel, to the least and largest value of all tokens so far; where the denominator
// is not positive, as negative weights can make it, the answer is 0 before that (released: where its share of the sum
// without weights is at most 1e-20). Decoded tokens are kept exactly.
//
// Parameters:
//   rank    tokens of each bin; default 12 (examples/kvcache/benchmark.sh). Where the budget leaves fewer, one bin
//   bins    0 (default): as many as the budget has for `rank`; otherwise this number, which share the budget: 1 is the
//           global coreset of the WildCat module
//   sinks   tokens; default 32 (released)
//   recent  tokens; default 32 (released)
//   tau     lambert (default) | fixed
//   max_pairs of rows compared per head; above it is infeasible
// Complexity: O(n r (d + dv + r)) once for bins of rank r, O(B (d + dv)) per query.
// Memory: B (d + dv) numbers, a weight for each token of a coreset, two vectors of dv numbers of 16 bits.
// Deviations: the kernel is computed in fp64 instead of fp32; one uniform number draws a key in place of a Gumbel
// variable for each key, which is the same law; keys that are combinations of those chosen are never drawn, where the
// released code divides by what rounding left of them, so that a bin may keep fewer than `rank`. The weights of exact
// tokens, which are 1, are not stored. A budget of all tokens keeps them exactly.
#pragma once

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/stages/pair_limit.hpp>

namespace kvbench::methods {

struct WildcatParams {
  enum class Tau { lambert, fixed };
  Index rank = 12, bins = 0, sinks = 32, recent = 32;
  Tau tau = Tau::lambert;
  PairLimit limit{0x1p31};  ///< a minute or more on one core at d = 128, in fp64
};
void fields(ParamVisitor& visitor, WildcatParams& params);

MethodInfo wildcat_method();

}  // namespace kvbench::methods
