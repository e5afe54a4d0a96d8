// SPDX-License-Identifier: Apache-2.0
// balancekv: halves the tokens by the signs of a self-balancing random walk. The tokens of one sign are kept at twice
// their weight, so that their sums approximate the sums over all tokens for every query.
// BalanceKV, arXiv 2502.07861, Algorithms 1 to 4 and section 4.
//
// SoftmaxBalance (Algorithm 2) assigns signs to the tokens of a batch in order. Let s be the sum over the earlier
// tokens i of sign_i exp(a <k_i, k_j>) <v_i, v_j>, where a is the scale of the logits. Token j gets +1 with probability
// 1/2 - s / (2 c R^2), R = exp(a r_key^2 / 2) r_val. |s| > c R^2 is a FAIL: the walk continues with a clamped
// probability, and the row reports the number of such steps. The smaller sign class is kept (equal sizes: +1) at twice
// its weight. The default, half=exact, keeps one token of each pair of neighbours instead.
//
// mode=batch, the form that the paper measures (section 4): the context is cut into blocks of `block` tokens, the last
// of which may be shorter, and each block is balanced alone. The tokens kept are cut into blocks again, for T rounds. N
// and D share the tokens and their weights 2^T. A budget of B tokens gives the smallest T that fits; the rest of B is a
// window of the most recent tokens, kept exactly. Decoded tokens are kept exactly (section 4.2).
// mode=stream, Algorithms 1 and 3: batches of t tokens in a binary counter of T levels, level l with weight 2^l. There
// is one instance per bucket 2^{i-1} < |v| <= 2^i for N and one with v = 1 for D; buckets with 2^i <= eps / (2 n)
// exp(-a r^2) max |v| are dropped. Decoded tokens continue the stream.
//
// Parameters:
//   constants  c: paper = 30 ln(n / delta), Algorithm 2 (default); tight = 1/2 + ln(2 n / delta), which suffices for a
//              sub-Gaussian walk; greedy = the limit c -> 0, sign -1 where s > 0, otherwise +1, without draws; or a
//              number. n = tokens of the call
//   delta      failure probability of a call, default 0: 1 / n (the paper: 1 / poly(n))
//   half       exact (default; section 4: "we strictly select n/2"): the walk runs over differences of neighbours and
//              keeps one of each pair, so that exactly half of the tokens is kept and the weights sum to n; an odd last
//              token keeps its weight | smaller: the smaller sign class of each block, Algorithm 2 | released: the rule
//              of `balancekv-repo` over all blocks, with its weights in both sums (batch only)
//   mode       auto (default: batch, or stream where the context is empty) | batch | stream
//   rounds     T, default -1: from the budget. Batch: as above. Stream: log2(n / t), rounded up (Theorem 3.1), or the
//              smallest that fits where t is given
//   block      tokens per block, default 256 (section 4.2; the released command line: 128). Batch only
//   t          batch size of a stream, even with half=exact; default 0: the largest even size that fits the budget.
//              Stream only
//   eps        of the bucket cut, default 0.1 (the text gives none; at realistic norms the cut lies below every bucket)
//   buckets    number of buckets over which the future tokens of a stream are assumed to spread when t is chosen,
//              default 4 (3.7 on average in the bundled trace, 2 to 5). The buckets of a context are counted instead
// Budget in mode=stream: the tokens held at the end of the context satisfy |N| (d + dv) + |D| d <= B (d + dv). For a
// stream of known length that starts empty, the bound holds at every time under the assumed number of buckets. The row
// reports the actual size.
//
// Readings: line 4 of Algorithm 1 has its inequality reversed, and line 9 means eps / (2 n), not eps / 2^n, as the
// proof of Theorem 3.1 uses it. Line 6 of Algorithm 3 tests j. r_key and r_val are those of the batch in the walk; in
// bucket i, r_val = 2^i. r and n of the cut are those of the context, or of the calibration keys of a stream, and grow
// where the stream exceeds them; r covers keys only. Zero values belong to no bucket and add nothing to N. With
// half=exact R is that of the differences: 2 R, or sqrt(2) R for v = 1. Exponents and thresholds are shifted together
// against overflow.
// The smaller class has about m / 2 - 0.4 sqrt(m) of m tokens, and every level of a stream loses that much again: with
// small t the sets shrink far below the budget and their weights far below n. half=exact loses nothing. N and D of
// mode=stream are drawn independently: where D lacks the peak of a sharp query that N holds, the quotient has no bound.
// Complexity: O(n block (d + dv)) per round and seed, about an exact pass over `block` queries; O(t (d + dv)) per
// streamed token and level; O(B (d + dv)) per query. Memory: B (d + dv) numbers and one weight (batch) or two levels
// (stream) per token.
#pragma once

#include <string>

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/sampling/softmax_balance.hpp>

namespace kvbench::methods {

struct BalancekvParams {
  enum class Half { smaller, exact, released };
  enum class Mode { automatic, batch, stream };
  std::string constants = "paper";
  double delta = 0;
  Half half = Half::exact;
  Mode mode = Mode::automatic;
  Index rounds = -1;
  Index block = 256;
  Index t = 0;
  double eps = 0.1;
  Index buckets = 4;
};
void fields(ParamVisitor& visitor, BalancekvParams& params);
/// Throws Error for invalid `constants` and for parameters that exclude each other.
void check(const BalancekvParams& params);
WalkSettings walk_settings(const BalancekvParams& params, float scale);

MethodInfo balancekv_method();

}  // namespace kvbench::methods
