// SPDX-License-Identifier: Apache-2.0
// subgen-kcenter: keeps the tokens whose keys cover the context best, and the most recent tokens. SubGen, arXiv
// 2402.06082, section 3.2: the algorithm that the experiments of that paper measure (Table 1); its guarantees are those
// of `subgen`.
//
// A budget of B tokens is a window of r recent ones and k = B - r centres. Greedy k-center runs once, over the tokens
// of the context before its last r: the first of them is the first centre, and each further centre is the token
// farthest from all centres so far; ties: the lowest token. The centres are tokens of the context, nothing is merged,
// and attention over the B tokens is unweighted. Decoded tokens enter the window and the oldest leave it: the query at
// position t is answered by the centres and the last r tokens up to and including t. Tokens that leave the window later
// are not candidates: the text clusters once. Where the context has fewer than k tokens before the window, all of them
// are centres and the window is wider by the difference, so that no token is dropped before B tokens are held.
//
// Parameters:
//   recent     share of the budget for the window, default 0.5, rounded up and at least one token, so that the newest
//              token is always kept. The text gives only r + k, not the split
//   values     false (default) | true: cover concatenated keys and values instead of keys (Fig. 1 of the paper compares
//              how well the two cluster)
//   max_pairs  limit of n k, default 2^33 (no source; minutes); above, `infeasible`
// Complexity: O(n k d) once for each number of candidates n - r, more than an exact pass over fewer than k queries; O(B
// d) per query. Memory: B (d + dv) numbers.
#pragma once

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/stages/pair_limit.hpp>

namespace kvbench::methods {

struct SubgenKCenterParams {
  double recent = 0.5;
  bool values = false;
  PairLimit limit{.pairs = 0x1p33};  ///< lower than the default: each centre reads all points from memory
};
void fields(ParamVisitor& visitor, SubgenKCenterParams& params);

MethodInfo subgen_kcenter_method();

}  // namespace kvbench::methods
