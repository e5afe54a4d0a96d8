// SPDX-License-Identifier: Apache-2.0
// The checks of ClusterKV, a file each, which opens with the statement and the reading of it.
#pragma once

#include <vector>

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::bounds {

// importance.cpp

/// The ids, in increasing order, of the `count` tokens with the largest scores; of equal scores, the lower id is taken.
std::vector<Index> most_important(std::span<const double> scores, Index count);
/// Share of `a` that is in `b`; both increasing.
double overlap(const std::vector<Index>& a, const std::vector<Index>& b);
/// Mean number of these tokens in the pages that contain at least one.
double tokens_per_page(const std::vector<Index>& tokens, Index page);

Check clusterkv_importance();

// near_keys.cpp

/// Mean distances of the logits and of the weights of tokens to those of their partners.
struct WeightDistances {
  double logits = 0, weights = 0;
};
/// `logits` of one query; partners[i] is the partner of token i.
WeightDistances weight_distances(std::span<const double> logits, std::span<const std::size_t> partners);
/// For each row [n, d] the other row with the largest cosine (ties: the lower).
std::vector<std::size_t> nearest_rows(std::span<const float> rows, Index d);

Check clusterkv_near_keys();

}  // namespace kvbench::bounds
