// SPDX-License-Identifier: Apache-2.0
// ClusterKV (arXiv 2412.03213), section II-B and Fig. 3: the important tokens change over decoding steps, and a page of
// 16 tokens that contains important tokens contains one or two. Reading: the important tokens of a query are the n / 32
// with the largest logits (the paper: about 256 of 8192). The independent units are four consecutive ones of 64 steps
// of a kv head. docs/theory/clusterkv.importance.md.
#pragma once

#include <vector>

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::bounds {

/// The ids, in increasing order, of the `count` tokens with the largest scores; of equal scores, the lower id is taken.
std::vector<Index> most_important(std::span<const double> scores, Index count);
/// Share of `a` that is in `b`; both increasing.
double overlap(const std::vector<Index>& a, const std::vector<Index>& b);
/// Mean number of these tokens in the pages that contain at least one.
double tokens_per_page(const std::vector<Index>& tokens, Index page);

Check clusterkv_importance();

}  // namespace kvbench::bounds
