// SPDX-License-Identifier: Apache-2.0
// Numbers by token, of which score-only methods make their scores. What reads tokens times channels runs through
// kernels; the numbers, one for each token, are worked on the host in fp64, so that a score is an expression:
// -norms(head.keys, backend).
#pragma once

#include <algorithm>
#include <iterator>
#include <valarray>

#include <kvbench/kernels/backend.hpp>

namespace kvbench::methods {

/// One number for each of n tokens.
using TokenNumbers = std::valarray<double>;

/// A buffer of one number for each token, on the host.
template <class T>
TokenNumbers on_host(const Buffer<T>& numbers, Backend& backend) {
  const auto host = backend.read(numbers);
  TokenNumbers out(host.size());
  std::copy(host.begin(), host.end(), std::begin(out));
  return out;
}

/// The scores [1, n] of a kv head, or in several rows.
Buffer<const float> as_scores(const TokenNumbers& numbers, Backend& backend, Index rows = 1);

/// |rows[i]|^2 of [n, c].
TokenNumbers norms2(const Buffer<const float>& rows, Backend& backend);
/// |rows[i]| of [n, c].
TokenNumbers norms(const Buffer<const float>& rows, Backend& backend);

/// The cosines between the rows [n, c], n > 0, and the mean of their directions; 0 for rows of zeros. Nothing of the
/// size of the rows is written.
TokenNumbers cosines_with_mean(const Buffer<const float>& rows, Backend& backend);

/// Each number divided by the sum over its block of `block` consecutive tokens, the last of which may be shorter; 0
/// where the sum is 0.
TokenNumbers shares_in_blocks(const TokenNumbers& numbers, Index block);
/// For each number, how many of its block come behind it: those that are smaller, or as large and later.
TokenNumbers ranks_in_blocks(const TokenNumbers& numbers, Index block);
/// exp(x) divided by its sum.
TokenNumbers softmax(const TokenNumbers& numbers);
/// Less their mean, divided by their standard deviation (with n) but by no less than 1e-6.
TokenNumbers z_scores(const TokenNumbers& numbers);
/// 0, 1, ..., n - 1.
TokenNumbers numbered(Index n);
/// The numbers behind `count` zeros.
TokenNumbers behind(Index count, const TokenNumbers& numbers);

}  // namespace kvbench::methods
