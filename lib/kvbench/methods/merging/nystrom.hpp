// SPDX-License-Identifier: Apache-2.0
// Nyström's approximation of the exponential kernel of keys, on the host in fp64: which keys span the others, and with
// which weights (WildCat, arXiv 2602.10056; microsoft/wildcat, wildcat/rp_nystrom.py and compress_kv.py). In fp32 the
// weights would depend on rounding, which the inverse of the kernel amplifies.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <kvbench/kernels/view.hpp>

namespace kvbench::methods {

/// tau^2 for n keys with s max |k|^2 = radius > 0: b / (2 W(b / (2 rho))), b = ln n / radius + 2, W Lambert's function,
/// 2 rho = 6.3832.
double kernel_temperature(Index n, double radius);

/// Keys that stand for all keys of a set.
struct Coreset {
  std::vector<Index> members;  ///< increasing
  /// [members, n] K_SS^-1 K_S,all: sum of weights[s][j] exp(<q, k_s>) over s is near exp(<q, k_j>). Of any sign.
  std::vector<double> weights;
};

/// At most `rank` of n keys, chosen one by one by randomly pivoted Cholesky of K(i, j) = exp(<k_i, k_j>): each with a
/// probability in proportion to the diagonal of what the ones before leave of K; `uniform(step)` is in (0, 1). Fewer
/// where these span all others: what is left of K is below 1e-10 of its diagonal. O(n rank (d + rank)).
/// keys [n, d]
Coreset nystrom_coreset(std::span<const double> keys, Index d, Index rank, const std::function<double(Index)>& uniform);

}  // namespace kvbench::methods
