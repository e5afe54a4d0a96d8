// SPDX-License-Identifier: Apache-2.0
// balancekv: halves the tokens by signs that a self-balancing random walk gives them, so that what stays, doubled, sums to what
// was there for every query. BalanceKV, arXiv 2502.07861, Algorithms 1 to 4 and section 4.
//
// SoftmaxBalance (Algorithm 2) signs the tokens of a batch in order: with s the sum over earlier ones of
// sign_i exp(a <k_i, k_j>) <v_i, v_j>, token j is +1 with probability 1/2 - s / (2 c R^2), R = exp(a r_key^2 / 2) r_val, a the
// scale of the logits. |s| > c R^2 is a FAIL: the walk goes on clamped, and the row says how often that was. The smaller sign
// class stays (equal: +1) at twice its weight.
//
// mode=batch, the form that the paper measures (section 4): the context in blocks of `block`, each balanced alone, the last one
// partial; what stays is cut into blocks again, T rounds. N and D share the tokens and their weights 2^T. A budget of B tokens
// means the smallest T that fits, and a window of the most recent tokens, kept exactly, of what it leaves. Decoded tokens are
// kept exactly (section 4.2).
// mode=stream, Algorithms 1 and 3: batches of t tokens in a binary counter of T levels, level l of weight 2^l. One instance a
// bucket 2^{i-1} < |v| <= 2^i for N, one with v = 1 for D; buckets with 2^i <= eps / (2 n) exp(-a r^2) max |v| are dropped.
// Decoded tokens go on with the stream.
//
// Parameters:
//   constants  c: paper = 30 ln(n / delta), Algorithm 2 (default); tight = 1/2 + ln(2 n / delta), which suffices for a
//              sub-Gaussian walk; greedy = the limit c -> 0, sign -1 where s > 0, else +1; or a number. n = tokens of the call
//   delta      failure probability of a call, default 0: 1 / n (the paper: 1 / poly(n))
//   half       smaller (default, Algorithm 2) | exact: the walk goes over differences of neighbours, of which one stays:
//              exactly half does and the weights sum to n; an odd last token is put aside with the weight it has | released:
//              the rule of `balancekv-repo` over all blocks, with its weights in both sums (batch only)
//   mode       auto (default: batch, and stream where a stream starts from nothing) | batch | stream
//   rounds     T, default -1: from the budget. Batch: as said above. Stream: log2(n / t), rounded up (Theorem 3.1), or the
//              smallest that fits where t is given
//   block      tokens of a block, default 256 (section 4.2; the released command line: 128). Batch only
//   t          batch size of a stream, even with half=exact; default 0: the largest even one that fits the budget. Stream only
//   eps        of the bucket cut, default 0.1 (the text gives none; at real norms the cut lies below every bucket)
//   buckets    buckets among which the tokens of a stream not yet seen are taken to spread for the choice of t, default 4 (3.6
//              on average in the bundled trace, 2 to 6). The values of a context are known and counted instead
// Budget in mode=stream: what is held at the end of the context fits |N| (d + dv) + |D| d <= B (d + dv); for a stream of
// known length from its first token, at every time under the spread assumed. What is really held is in the row.
//
// Readings. Line 4 of Algorithm 1 has its inequality reversed and line 9 means eps / (2 n), not eps / 2^n, as the proof of
// Theorem 3.1 uses it. Line 6 of Algorithm 3 tests j. r_key and r_val are those of the batch walked; in bucket i, r_val = 2^i.
// r and n of the cut: those of the context, or of the calibration keys of a stream, and growing where it outgrows them; r knows
// keys only. Values of zero belong to no bucket and add nothing to N. With half=exact R is that of the differences: 2 R, or
// sqrt(2) R for v = 1. Exponents are shifted, thresholds along with them, against overflow.
// The smaller class has about m / 2 - 0.4 sqrt(m) of m tokens, and every level of a stream loses that much again: with small t
// the sets shrink far below the budget and their weights far below n. half=exact loses nothing. N and D of mode=stream are
// drawn apart: where D misses the peak of a sharp query that N holds, the quotient has no bound.
// Complexity: O(n block (d + dv)) a round and seed, about an exact pass over `block` queries; O(t (d + dv)) a streamed token
// and level; O(B (d + dv)) a query. Memory: B (d + dv) numbers and a weight (batch) or two levels (stream) a token.
#pragma once

#include <string>

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/sampling/softmax_balance.hpp>

namespace kvbench {

struct BalancekvParams {
  enum class Half { smaller, exact, released };
  enum class Mode { automatic, batch, stream };
  std::string constants = "paper";
  double delta = 0;
  Half half = Half::smaller;
  Mode mode = Mode::automatic;
  Index rounds = -1;
  Index block = 256;
  Index t = 0;
  double eps = 0.1;
  Index buckets = 4;
};
void fields(ParamVisitor& visitor, BalancekvParams& params);
/// Throws Error for constants that are none, and for parameters that do not go together.
void check(const BalancekvParams& params);
WalkSettings walk_settings(const BalancekvParams& params, float scale);

MethodInfo balancekv_method();

}  // namespace kvbench
