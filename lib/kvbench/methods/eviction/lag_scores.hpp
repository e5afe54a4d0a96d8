// SPDX-License-Identifier: Apache-2.0
// Lag-relative scores of LagKV (arXiv 2504.04704, section 3): how unevenly a token fills, channel by channel, the range
// of the tokens that follow.
#pragma once

#include <kvbench/methods/stages/token_numbers.hpp>

namespace kvbench::methods {

/// Scores of the tokens of all parts but the last, (P - 1) lag numbers, from the rows [P lag, c] of P consecutive parts
/// of `lag` tokens: channel by channel y = (x - min) / (max - min) with minimum and maximum over the next part, their
/// standard deviation over the channels (with c - 1), and its softmax over the part. Where max = min, for which the
/// released codes divide by 0, y = 0; so is the deviation of one channel.
TokenNumbers lag_scores(const Buffer<const float>& rows, Index lag, Backend& backend);

}  // namespace kvbench::methods
