// SPDX-License-Identifier: Apache-2.0
// balancekv-repo: the halving walk as the authors released it, which is another algorithm than the paper's `balancekv`.
// BalanceKV, arXiv 2502.07861: the code of Fig. 2 and section 4.
//
// Each of T rounds cuts its n tokens into blocks of `block`, padded with zeros, and walks over each: the kernel is
// exp(temp a <k_i, k_j> - beta) (<w_i v_i, w_j v_j> + 0.025) with keys less the mean of their padded block, token j is +1 where
// its draw is below 1/2 - gamma s_j. There is no threshold, no FAIL and no clamp; the first token of a block is +1. Which
// floor(n / 2) tokens stay, at weight 1 or 2, is released_half() of the signs of all blocks; n = 1 keeps nothing. The next
// round takes them in that order, weight 2 before weight 1, with w the product of their weights so far. A query is answered
// with w in the numerator and 2^T in the denominator: where w < 2^T, which is the rule, outputs come out too small. A budget of
// B tokens means the smallest T that fits, and a window of the most recent tokens, kept exactly, of what it leaves. Decoded
// tokens are kept exactly.
//
// Parameters (defaults are those of the released command line, except block):
//   mass    released (default): w in the numerator, 2^T in the denominator, as the notebook of Fig. 2 | consistent: w in both
//           sums, as the released needle-in-a-haystack path
//   temp    factor of the exponent, default 1 (command line); 0.1 in the notebook of Fig. 2
//   gamma   step, default 4
//   beta    taken off the exponent, default 0
//   block   tokens of a block, default 256 (paper and notebook); 128 on the command line
//   rounds  T, default -1: from the budget
// Figure protocol (Fig. 2, configs/balancekv-fig2.toml): prefill, the last 256 tokens exact and queried (--window 256), the
// first 256 exact too (--protect-outside 256,0), block 256, T = log2(1 / rate), temp 0.1; their layers 1, 2, 5 are indices 0,
// 1, 4; metric `relerr_balancekv`.
//
// At temp 1 nearly every sign is certain (|gamma s| > 1/2; the row counts them) and the set hardly depends on the seed. gamma =
// 4 is a threshold constant c = 1 / (8 R^2), far below what any bound of the paper needs. Deviations: sums in fp64 or fp32,
// where the notebook computes in bf16; the exponent is shifted against overflow, gamma along with it; the code's 1e-8 beside
// 0.025 is kept. Complexity: O(n block (d + dv)) a round and seed, about an exact pass over `block`
// queries; O(B (d + dv)) a query. Memory: B (d + dv) numbers and two
// weights a token.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench {

struct BalancekvRepoParams {
  enum class Mass { released, consistent };
  Mass mass = Mass::released;
  double temp = 1;
  double gamma = 4;
  double beta = 0;
  Index block = 256;
  Index rounds = -1;
};
void fields(ParamVisitor& visitor, BalancekvRepoParams& params);

MethodInfo balancekv_repo_method();

}  // namespace kvbench
