// SPDX-License-Identifier: Apache-2.0
// kh-compress: a context is halved in rounds, each time within buckets of twice the size, and a pair of neighbours
// keeps the token that balances the exponential kernel of those kept and dropped before. Low-rank thinning, arXiv
// 2502.12063, section 3 (KH-Compress, Thinformer); microsoft/thinformer, thinformer/thinformer.py.
//
// Of a context of n tokens every (n / n4)-th of the first ones is taken, n4 the largest power of 4 up to n. Rounds
// 1, ..., log4 n4 - g halve buckets of 4^(g+1), 2 4^(g+1), ... consecutive tokens and leave 2^g sqrt(n4). With
// K(i, j) = exp(s (<k_i, k_j> - max |k|^2)) (<v_i, v_j> + max |v|_inf^2), the kernel of the difference of a pair
// D = K on (phi(first) - phi(second)), and sums S of signs times D over earlier pairs of the bucket, the second token
// of a pair is kept where u sqrt(D_ii) max_{j <= i} sqrt(D_jj) <= S_i, u uniform in (-L, L), L = 1/2 + ln(2 / (p S)), S
// the tokens of the bucket, p = delta / (4^(g+1) (log4 n4 - g) n4); the first pair of a bucket keeps its first token.
// With chance 1/2 all buckets of a round keep the other halves instead.
// A budget of B tokens takes the largest g with 2^g sqrt(n4) <= B.
//
// Parameters:
//   delta   default 0.5 (released code)
//   weight  context (default): each kept token has the weight n / kept in both sums, as decoded tokens beside them have
//           the weight 1 | one: the released attention, which has no other tokens
// Complexity: O(n^1.5 2^g (d + dv)) once, O(B (d + dv)) per query. Memory: B (d + dv) numbers, and B weights.
// Deviations: none known but the default weight. A budget of all tokens keeps them exactly.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

struct KhCompressParams {
  enum class Weight { context, one };
  double delta = 0.5;
  Weight weight = Weight::context;
};
void fields(ParamVisitor& visitor, KhCompressParams& params);

MethodInfo kh_compress_method();

}  // namespace kvbench::methods
