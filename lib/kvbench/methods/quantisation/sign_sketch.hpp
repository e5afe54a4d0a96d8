// SPDX-License-Identifier: Apache-2.0
// The estimate of inner products from signs (QJL, Zandieh, Daliri, Han, arXiv 2406.03482, section 3): of a row x,
// sign(S x) and |x| are stored, and <q, x> is estimated by sqrt(pi / 2) / m |x| <S q, sign(S x)>. This is linear in q:
// the inner product with the row sqrt(pi / 2) / m |x| S^T sign(S x), which is what is computed here.
// Its mean over S with independent normal numbers is x; the variance of <q, estimate> is at most
// pi / (2 m) |q|^2 |x|^2. With rows of norm sqrt(d) that are orthogonal by blocks of d, the mean is
// sqrt(d pi / 2) E|u| x with u a coordinate of a random unit vector: larger by about 1 / (4 d).
#pragma once

#include <kvbench/kernels/backend.hpp>

namespace kvbench::methods {

struct MatrixPair;

/// The norms of rows [n, 1]: in fp32, and as stored in f16.
struct RowNorms {
  Buffer<const float> exact, stored;
};
RowNorms norms_of(const Buffer<const float>& rows, Backend& backend);

/// The estimates [n, d] of rows [n, d] from the first m rows of the sketch, whose norms are `norms` [n, 1]. The sign of
/// 0 is -1, as in the released code.
Buffer<const float> sign_estimates(const Buffer<const float>& rows, const Buffer<const float>& norms,
                                   const MatrixPair& sketch, Backend& backend);

/// (codes - zero) * factors + sums, number by number, as new [n, d]: differences and masks of rows. The codes are
/// [n, d]; the sums may be absent and are then 0.
Buffer<const float> combined(const Buffer<const std::uint8_t>& codes, int zero, const Buffer<const float>& factors,
                             const Buffer<const float>& sums, Backend& backend);

/// a - b of [n, d].
Buffer<const float> difference(const Buffer<const float>& a, const Buffer<const float>& b, Backend& backend);

}  // namespace kvbench::methods
