// SPDX-License-Identifier: Apache-2.0
// Chelsea (arXiv 2506.11418), observation 3, section 5.4, appendix B and Table 11.
//   chelsea.obs3      heads differ in the share of their tokens that can be linked, and the same heads have few links
//                     elsewhere: the head with the most unlinked tokens in one half of the text is compared with the
//                     others in the other half, and that of one prompt of the trace in another prompt
//   chelsea.outliers  at 20 % of the cache, keeping the worst 4 % of the heads whole, at the expense of the budgets of
//                     the others, lowers the error; and the heads chosen in this way have the largest errors
// A token of A is unlinked where its best edge in the first round of chunked soft matching has a cosine of at most 0.8
// (the number is missing in the available copy of the paper; see chelsea.hpp). docs/theory/chelsea.outliers.md.
#pragma once

#include <vector>

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::bounds {

/// The links of the first round in one head.
struct HeadLinks {
  std::int64_t layer = 0;
  Index kv_head = 0;
  double unlinked = 0, mean = 0;          ///< share of A tokens without a link, mean cosine of the best edges
  std::vector<double> unlinked_by_block;  ///< share of unlinked tokens in blocks of 32 A tokens
};
/// Index of the head with the largest mean over the blocks of this parity.
std::size_t worst_in_half(const std::vector<HeadLinks>& heads, std::size_t parity);
/// For each block, the unlinked share of that head less the mean of the other heads.
std::vector<double> excess_by_block(const std::vector<HeadLinks>& heads, std::size_t head);
/// The same for the blocks of the other parity only.
std::vector<double> against_others(const std::vector<HeadLinks>& heads, std::size_t head, std::size_t parity);

Check chelsea_observation3();
Check chelsea_outlier_heads();

}  // namespace kvbench::bounds
