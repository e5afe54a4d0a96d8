// SPDX-License-Identifier: Apache-2.0
// uniform-repo: the uniform sampling that the released BalanceKV code uses as its baseline: fair coins in place of the
// walk. BalanceKV, arXiv 2502.07861, the code of Fig. 2.
//
// Each of T rounds gives its n tokens fair signs, except +1 to the first of each block. It keeps the first floor(n / 2)
// tokens after a stable sort that places -1 before +1. All have weight 2^T in both sums. Rates are therefore powers of
// 1/2, early tokens of the -1 class are preferred, and the first token of a block is kept last: the sampling is not
// quite uniform, unlike `uniform`. A budget of B tokens gives the smallest T that fits; the rest of B is a window of
// the most recent tokens, kept exactly. Decoded tokens are kept exactly.
//
// Parameters:
//   block   tokens per block, default 256 (paper and notebook); 128 on the command line
//   rounds  T, default -1: from the budget
// Protocol of the figure: that of `balancekv-repo`.
// Complexity: O(n) per seed, O(B (d + dv)) per query. Memory: B (d + dv) numbers and one weight per token.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

struct UniformRepoParams {
  Index block = 256;
  Index rounds = -1;
};
void fields(ParamVisitor& visitor, UniformRepoParams& params);

MethodInfo uniform_repo_method();

}  // namespace kvbench::methods
