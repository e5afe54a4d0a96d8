// SPDX-License-Identifier: Apache-2.0
// The heads that `chelsea` keeps whole, and the budget of the other heads. Chelsea, arXiv 2506.11418, appendices B and
// C.2.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include <kvbench/methods/merging/merging_cache.hpp>

namespace kvbench::methods {

struct OutlierHead {
  Index layer = 0, kv_head = 0;
  friend auto operator<=>(const OutlierHead&, const OutlierHead&) = default;
};

/// Reads lines "layer kv_head"; '#' starts a comment. The result is sorted. Throws Error, naming file and line, where a
/// line has another form or occurs twice, or where the file cannot be read or names no head.
std::vector<OutlierHead> read_outlier_heads(const std::string& path);

/// The quality of the links of a head in the first round.
struct LinkQuality {
  double unlinked = 0;  ///< share of the A tokens without a link above the threshold
  double mean = 0;      ///< similarity of all links; 1 where there are none
};
LinkQuality link_quality(const std::vector<MergeLink>& links, Index linking, double threshold);

/// The ceil(ratio * heads) heads with the largest unlinked share, ties to the lower mean similarity, then to the lower
/// number; increasing.
std::vector<Index> worst_linked(const std::vector<LinkQuality>& heads, double ratio);

/// The budget of a head that is not kept whole: (budget * heads - full * tokens) / (heads - full), rounded down, and
/// not more than the budget. Throws Infeasible below 1.
Index budget_beside_outliers(Index budget, Index heads, Index full, Index tokens);

}  // namespace kvbench::methods
