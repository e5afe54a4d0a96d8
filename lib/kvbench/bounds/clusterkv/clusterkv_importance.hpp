// SPDX-License-Identifier: Apache-2.0
// ClusterKV (arXiv 2412.03213), section II-B and Fig. 3: which tokens are important changes over decoding steps, and a page of
// 16 tokens that holds important ones holds one or two. Reading: the important tokens of a query are the n / 32 with the
// largest logits (the paper: about 256 of 8192). Units are groups of four of 64 steps of a kv head.
// docs/theory/clusterkv.importance.md.
#pragma once

#include <vector>

#include <kvbench/bounds/claims.hpp>

namespace kvbench {

/// Increasing ids of the `count` tokens with the largest scores, ties to the lower id.
std::vector<Index> most_important(std::span<const double> scores, Index count);
/// Share of `a` that is in `b`; both increasing.
double overlap(const std::vector<Index>& a, const std::vector<Index>& b);
/// Mean number of the tokens in those pages that hold one.
double tokens_a_page(const std::vector<Index>& tokens, Index page);

Claim clusterkv_importance();

}  // namespace kvbench
