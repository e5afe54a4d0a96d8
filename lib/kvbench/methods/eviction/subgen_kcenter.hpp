// SPDX-License-Identifier: Apache-2.0
// subgen-kcenter: keeps the keys that cover the context best, and the most recent tokens. SubGen, arXiv 2402.06082,
// section 3.2: what the experiments of that paper measure (Table 1); its guarantees are for `subgen`.
//
// A budget of B tokens is a window of r recent ones and k = B - r centres. Greedy k-center runs once, over the tokens of the
// context older than its last r: the first of them is the first centre, then always the token farthest from all centres so
// far; ties: the lowest token. The centres' own tokens are kept, nothing is merged, and attention over the B tokens is plain.
// Decoded tokens enter the window and the oldest leave it: the query at position t is answered by the centres and the last r
// tokens up to and including t. Tokens that leave the window later are not candidates: the text clusters once. Where the
// context has fewer than k older tokens, all of them are centres and the window is that much wider, so nothing leaves before B
// tokens are held.
//
// Parameters:
//   recent  share of the budget that is the window, default 0.5, rounded up and at least one token, so that the newest token is
//           always seen. The text gives r + k only, not the split.
//   values  false (default) | true: cover concatenated keys and values instead of keys (the paper's Fig. 1 asks which of them
//           cluster better).
//   max_pairs   n k, default 2^33 (no source; minutes): above, `infeasible`
// Complexity: O(n k d) once for each number of candidates n - r, more than an exact pass over fewer than k queries; O(B d) a
// query. Memory: B (d+dv) numbers.
#pragma once

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/stages/pair_limit.hpp>

namespace kvbench {

struct SubgenKCenterParams {
  double recent = 0.5;
  bool values = false;
  PairLimit limit{.pairs = 0x1p33};  ///< each centre reads all points from memory: dearer than cached tiles
};
void fields(ParamVisitor& visitor, SubgenKCenterParams& params);

MethodInfo subgen_kcenter_method();

}  // namespace kvbench
