// SPDX-License-Identifier: Apache-2.0
// ClusterKV (arXiv 2412.03213), design rationale: "tokens which are close in semantic space tend to have similar
// attention weights for a given q". Chelsea (arXiv 2506.11418, sections 1 and 3) merges keys for the same reason. Each
// token is paired with the token whose key has the largest cosine with its own; the difference of their attention
// weights is compared with that of the token and a random one, and with that of the token and its neighbour in the
// text. docs/theory/clusterkv.near_keys.md.
#pragma once

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::bounds {

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
