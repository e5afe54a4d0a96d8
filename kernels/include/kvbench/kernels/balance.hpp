// SPDX-License-Identifier: Apache-2.0
// The self-balancing walk over blocks of tokens (BalanceKV, arXiv 2502.07861, Algorithm 1; Alweiss, Liu, Sawhney,
// "Discrepancy minimization via a self-balancing walk", 2021).
#pragma once

#include <tuple>

#include <kvbench/kernels/buffer.hpp>
#include <kvbench/kernels/cost.hpp>

namespace kvbench::kernels {

/// Signs the rows of each block b, starts[b] <= i < starts[b+1], in order. With
///   K(i, j) = exp(scale <k_i, k_j> - shift[b]) (<w_i v_i, w_j v_j> + value_offset)      (values absent: exp(...)
///                                                                                       alone)
///   s_i     = sum over earlier rows j of the block of sign_j K(i, j)
/// sign_i = +1 where uniforms[i] < 1/2 - step[b] s_i, else -1; with `greedy`, -1 where s_i > 0, else +1. With `pairs`,
/// the walk goes over the differences phi(2p) - phi(2p+1) of neighbouring rows of a block, where phi is the feature map
/// of K: the first row of a pair gets the sign drawn with its uniform, the second the opposite sign. The last row of an
/// odd block is walked alone.
template <template <class> class Ref>
struct BalanceWalk {
  Ref<const float> keys;           ///< [n, d]
  Ref<const float> values = {};    ///< [n, dv]; absent: the value factor is 1
  Ref<const float> weights = {};   ///< [n, 1] w, a factor of the row's values alone; absent: 1
  Ref<const std::int32_t> starts;  ///< [b+1, 1] increasing from 0 to n
  Ref<const float> shift;          ///< [b, 1] subtracted from the exponent, against overflow
  Ref<const float> step;           ///< [b, 1] 1 / (2 c R^2) for K as shifted; not read where greedy
  float scale = 1;
  float value_offset = 0;
  Index centre = 0;  ///< > 0: (sum of the block's keys) / centre is subtracted from the keys before they enter K
  bool greedy = false;
  bool first_positive = false;  ///< the first row of each block is +1, whatever its uniform
  bool pairs = false;
  Ref<const double> uniforms;  ///< [n, 1] in (0, 1); not read where greedy
  Ref<std::int32_t> signs;     ///< [n, 1] +1 or -1
  Ref<std::int32_t> fails;     ///< [b, 1] rows with |step s_i| > 1/2: the walk is clamped there and its bound is void

  static constexpr auto fields(auto& op) {
    return std::tie(op.keys, op.values, op.weights, op.starts, op.shift, op.step, op.scale, op.value_offset, op.centre,
                    op.greedy, op.first_positive, op.pairs, op.uniforms, op.signs, op.fails);
  }
};

/// Counts blocks of equal size: n/b rows against half a block each.
inline Cost cost(const BalanceWalk<Buffer>& a) {
  const double n = static_cast<double>(a.keys.rows()), blocks = static_cast<double>(a.shift.rows());
  const double pairs = blocks == 0 ? 0 : n * n / blocks / 2;
  return {pairs * static_cast<double>(2 * a.keys.cols() + 2 * a.values.cols() + 4),
          bytes(a.keys, a.values, a.weights, a.uniforms, a.signs)};
}

}  // namespace kvbench::kernels
