// SPDX-License-Identifier: Apache-2.0
// balancekv-repo: the halving walk of the released code, which differs from the algorithm of the paper (`balancekv`).
// BalanceKV, arXiv 2502.07861: the code of Fig. 2 and section 4.
//
// Each of T rounds cuts its n tokens into blocks of `block`, padded with zeros, and runs a walk over each block. The
// kernel is exp(temp a <k_i, k_j> - beta) (<w_i v_i, w_j v_j> + 0.025), where a is the scale of the logits and the mean
// of the padded block is subtracted from its keys. Token j gets +1 where its draw is below 1/2 - gamma s_j, s_j = the
// sum of sign_i kernel(i, j) over the earlier tokens i. There is no threshold, no FAIL and no clamp; the first token of
// a block gets +1. released_half() selects floor(n / 2) tokens at weight 1 or 2 from the signs of all blocks; n = 1
// keeps nothing. The next round takes them in that order, weight 2 before weight 1, with w the product of their weights
// so far. A query is answered with w in the numerator and 2^T in the denominator: usually w < 2^T, and then outputs are
// too small. A budget of B tokens gives the smallest T that fits; the rest of B is a window of the most recent tokens,
// kept exactly. Decoded tokens are kept exactly.
//
// Parameters (defaults are those of the released command line, except block):
//   mass    released (default): w in the numerator, 2^T in the denominator, as in the notebook of Fig. 2 | consistent:
//           w in both sums, as in the released needle-in-a-haystack path
//   temp    factor of the exponent, default 1 (command line); 0.1 in the notebook of Fig. 2
//   gamma   step, default 4
//   beta    subtracted from the exponent, default 0
//   block   tokens per block, default 256 (paper and notebook); 128 on the command line
//   rounds  T, default -1: from the budget
// Protocol of the figure (Fig. 2, configs/balancekv-fig2.toml): prefill, the last 256 tokens exact and queried
// (--window 256), the first 256 exact too (--protect-outside 256,0), block 256, T = log2(1 / rate), temp 0.1; their
// layers 1, 2, 5 are indices 0, 1, 4; metric `relerr_balancekv`.
//
// At temp 1 nearly every sign is forced (|gamma s| > 1/2; the row reports their number), and the set hardly depends on
// the seed. gamma = 4 is a threshold constant c = 1 / (8 R^2), far below the bounds of the paper. Deviations: sums in
// fp64 or fp32, where the notebook computes in bf16; exponent and gamma are shifted together against overflow; the
// code's 1e-8 added to 0.025 is kept.
// Complexity: O(n block (d + dv)) per round and seed, about an exact pass over `block` queries; O(B (d + dv)) per
// query. Memory: B (d + dv) numbers and two weights per token.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

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

}  // namespace kvbench::methods
