// SPDX-License-Identifier: Apache-2.0
// attention-matching: keeps the keys that reference queries attend to most, and gives each of them a weight and a value
// of its own, such that these queries get the sums and the answers of the whole context. Both are least-squares fits.
// Fast KV Compaction via Attention Matching, arXiv 2602.16284, section 3; adamzweiger/compaction,
// algorithms/highest_attention_keys.py and omp.py, configurations AM-HighestAttnKeys-basic and AM-OMP-basic.
//
// The reference queries are those of the context that the trace holds, of all query heads of the group; each sees every
// token of the context, as in the released code. E_rj = exp(logit - row maximum), y_r = sum_j E_rj.
// form=basic: the B tokens of the largest root mean square of the softmax weight over the queries are kept, ties to the
//   lower. Their weights w are the least squares of E_kept w = y, clamped to [e^-3, e^3], then two steps of projected
//   gradient descent.
// form=omp: tokens are added one by one, each time that whose E has the largest inner product with y - E_kept w, and w
//   becomes the least squares clamped to [1e-12, e^7]. In the end tokens with w < e^-7 are left out for good and others
//   are added, three times at most.
// The values C are the least squares of softmax(logit + ln w) C = exact output of the context. Both sums have the
// weights w. Decoded tokens are kept exactly.
//
// Parameters:
//   form      basic (default) | omp
//   queries   reference queries of the group, at most, evenly spaced over those in the trace; default 2048 (no source:
//             the released query configuration draws up to 100000 of self-generated texts and of the context)
//   max_pairs of rows compared per head; above it is infeasible
// Complexity: O(R n (d + dv) + R B min(R, B)) for R queries, form=omp O(R n B + B^2 R) per budget; O(B (d + dv)) per
// query.
// Memory: B (d + dv + 1) numbers.
// Deviations: the headline results recompute the queries with the layers before compacted, and generate texts to query;
// a replay has the context's own queries. Budgets per head that were optimised beforehand are not part of it. Fits run
// in fp64 by Cholesky of normal equations with 1e-10 of the mean diagonal, in place of fp32 lstsq; power iterations
// start from equal components instead of random ones. The released weights are stored as logarithms in the cache's
// type.
#pragma once

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/stages/pair_limit.hpp>

namespace kvbench::methods {

struct AttentionMatchingParams {
  enum class Form { basic, omp };
  Form form = Form::basic;
  Index queries = 2048;
  PairLimit limit;
};
void fields(ParamVisitor& visitor, AttentionMatchingParams& params);

MethodInfo attention_matching_method();

}  // namespace kvbench::methods
