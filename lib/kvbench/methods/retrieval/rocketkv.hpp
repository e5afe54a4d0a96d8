// SPDX-License-Identifier: Apache-2.0
// rocketkv: the prompt is first reduced to the tokens that its last queries vote for. Each later query then ranks pages
// of the tokens that are left by bounds on its logits, from its largest channels alone, and is answered by the best B
// tokens. RocketKV, arXiv 2502.14051, sections 3.2 and 3.3; NVlabs/RocketKV gpt-fast/rocket.py.
//
// A context of n tokens and a budget of B < n tokens that answer a query: the released token_budget is 2 B, because
// half of it is the traffic of the index. c = max(1, n / (2 B)) is divided: C = n / c^a tokens stay, a = min(0.2 + 0.06
// log2 c, 0.8), and c' = max(1, C / (2 B)) is left for each query.
// 1. As snapkv with a window of 32 and maxima over 63 neighbours of the votes of the whole query group: C tokens stay
//    for good.
// 2. The tokens that stayed and the decoded ones, in the order of the text, form pages of
//    p = min(floor c', ceil sqrt c'). A query takes its r = round(d p / c') channels with the largest sum of |q| over
//    the group, at least one, and scores each page by sum_c q_c hi_c, or q_c lo_c where the sum of q_c over the group
//    is not positive; hi and lo are the largest and the smallest component of the page's keys. The softmax of these
//    scores, times scale / sqrt(share of sum |q| in the r channels), over all tokens, a page's score for each of its
//    tokens, averaged over the group, ranks tokens, ties to the lower.
//
// Parameters:
//   window   voting queries, default 32 (released code; 128 for SCBench)
//   kernel   pooling width of the votes in tokens, odd, default 63 (released code)
//   split    a, default -1: the released formula; 0.3, 0.5 and 0.7 are released ablations
// Complexity: O(G W n d) once; O(C r / p) per query and query head to rank, O(B d) to answer. Each query reads rows of
// its own, as with quest: a block of queries costs more than an exact pass from B = n/8 on.
// Memory: C (d + dv) numbers, and 2 d for each page, or a second copy of the keys where p = 1; r numbers of a page are
// read per query.
// Deviations: the released code keeps room for the tokens to be generated within C; here C is for the prompt alone.
// Decoded tokens stay and compete, as there. Its accuracy code (pipeline/) rounds r down and takes pages of
// ceil sqrt c' where c' allows. The variant for several turns is not part of it.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

struct RocketkvParams {
  Index window = 32;
  Index kernel = 63;
  double split = -1;
};
void fields(ParamVisitor& visitor, RocketkvParams& params);
/// Throws Error for an even kernel.
void check(const RocketkvParams& params);

/// What follows from a budget.
struct RocketkvSizes {
  Index stay = 0;      ///< C
  Index page = 1;      ///< p
  Index channels = 1;  ///< r
};
RocketkvSizes rocketkv_sizes(Index tokens, Index budget, Index d, double split);

MethodInfo rocketkv_method();

}  // namespace kvbench::methods
