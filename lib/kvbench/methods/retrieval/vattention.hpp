// SPDX-License-Identifier: Apache-2.0
// vattention: each query takes first, recent and top tokens exactly, and estimates what the others add to its sums from
// a random sample of them. The size of the sample follows from a first sample, such that the denominator is within eps
// of the exact one with probability 1 - delta. arXiv 2510.05688, sections 3 and 4; skylight-org/sparse-attention-hub,
// research_attention/maskers: SinkMasker, LocalMasker, OracleTopK and AdaptiveSamplingMasker in this order.
//
// The exact set E of a query are S first tokens, the last W tokens that it sees, and the k tokens between them with the
// largest logits. The `size` tokens between first and recent ones, those of E among them, are sampled with replacement:
// first b = max(2, base * size) of them, whose exp(logit) have the standard deviation sigma (of b - 1) and give, with
// weight size / b, an estimate D of the denominator together with E. The answer is given by E with weight 1 and by a
// new sample of m = (Phi^-1(1 - delta) sigma size / (eps D))^2 tokens, rounded down and at least b, with weight
// size / m; a token of E that is drawn keeps weight 1. A query that sees at most B tokens takes all of them.
//
// Parameters:
//   sinks    tokens, default 128 (released configurations), at most B / 4
//   window   tokens, default 128 (released configurations), at most B / 4
//   heavy    share of k in the B - S - W tokens that are left; the rest are for samples. Default 0.5 (the released
//            configurations give heavy_size and base_rate_sampling 0.05 of the context each)
//   base     b as a share of `size`, default 0.05 (released configurations); 0: no samples, and k = B - S - W
//   eps      relative error of the denominator, default 0.05 (released configurations)
//   delta    probability of a larger error, default 0.05 (released configurations); asymptotic, of one side
//   samples  within (default): m is at most what the budget leaves, and the row says how many queries this cut, for
//            which eps and delta mean nothing | beyond: k = B - S - W, and m samples in addition (the released rule,
//            whose density follows from the data)
//   repeats  once (default, released code): a token that is drawn twice counts once, so that the estimate is low |
//            each: it counts as often as it was drawn, as the estimator of the paper does
// Complexity: O(n) per query and query head on exact logits, O(B (d + dv)) to answer. Each query reads rows of its own,
// as with quest: a block of queries costs more than an exact pass from B = n/8 on. On a GPU the logits of a block
// cross to the host.
// Memory: not reduced; ids and weights of the chosen tokens of each query head in addition.
// Deviations: top-k by exact logits, as in the released configuration vattention_oracle; selection by an index
// (HashAttention, PQ) is not part of it. The released code divides by size / m + 1e-6.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

struct VattentionParams {
  enum class Samples { within, beyond };
  enum class Repeats { once, each };
  Index sinks = 128;
  Index window = 128;
  double heavy = 0.5;
  double base = 0.05;
  double eps = 0.05;
  double delta = 0.05;
  Samples samples = Samples::within;
  Repeats repeats = Repeats::once;
};
void fields(ParamVisitor& visitor, VattentionParams& params);

/// m before it is limited to what the budget leaves: with quantile = Phi^-1(1 - delta), at least `base`, at most
/// `size`. Deviation and denominator are in units of one exp(logit).
Index vattention_samples(double quantile, double deviation, double denominator, double eps, Index base, Index size);

MethodInfo vattention_method();

}  // namespace kvbench::methods
