// SPDX-License-Identifier: Apache-2.0
// uniform-repo: the uniform sampling that the released BalanceKV code compares with: fair coins in place of its walk.
// BalanceKV, arXiv 2502.07861, the code of Fig. 2.
//
// Each of T rounds gives its n tokens fair signs, +1 to the first of each block, and keeps the first floor(n / 2) in the order
// "-1 before +1, then as they came". All weigh 2^T in both sums. So rates are powers of 1/2, the tokens with the earliest
// places of the -1 class are preferred, and the first of a block is kept last: not quite uniform; `uniform` is. A budget of B
// tokens means the smallest T that fits, and a window of the most recent tokens, kept exactly, of what it leaves. Decoded
// tokens are kept exactly.
//
// Parameters:
//   block   tokens of a block, default 256 (paper and notebook); 128 on the command line
//   rounds  T, default -1: from the budget
// Figure protocol: that of `balancekv-repo`. Complexity: O(n) a seed, O(B (d + dv)) a query. Memory: B (d + dv) numbers and a
// weight a token.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench {

struct UniformRepoParams {
  Index block = 256;
  Index rounds = -1;
};
void fields(ParamVisitor& visitor, UniformRepoParams& params);

MethodInfo uniform_repo_method();

}  // namespace kvbench
