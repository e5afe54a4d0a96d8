// SPDX-License-Identifier: Apache-2.0
// bsm: bipartite soft matching over the whole middle of the cache: tokens at even places look for the most similar token at an
// odd place, the best of these links merge, and merged entries answer with the number of tokens in them.
// ToMe, arXiv 2210.09461, section 3, on keys as in Chelsea, arXiv 2506.11418, section 5.2 and Table 1.
//
// Rounds, budget, decoding and answers are those of `chelsea` (see there) with one chunk, the whole middle, and no outlier
// heads. Similarities are searched in tiles and never stored, so a context of 32k tokens needs no memory beyond its keys.
//
// Parameters:
//   sinks    tokens never merged, default 16 (Chelsea section 7.1); ToMe protects its class token alone
//   recent   last tokens not merged, default 64 (Chelsea section 7.1)
//   slack    entries freed at once while decoding, default 128 (as `chelsea`)
//   ratio, decay, floor   share of the middle that a round removes (as `chelsea`), defaults 0.5, 0, 0.05
//   order    place (default) | concat: what is left of A before B, as released with ToMe
//   max_pairs   cosines of a round, default 2^37 (no source; minutes): above, `infeasible`. 740k tokens stay below it
// Complexity: O(M^2 d / 4) for the first round over M middle tokens, more than an exact pass over fewer than M/8 queries, and
// a quarter for each round after it; O(B d) a query.
// Memory: B (d + dv) numbers and B degrees.
// Deviations: ToMe merges inside each block of a vision transformer by a fixed number of tokens; here the number is what the
// budget asks for. `order=place` keeps text order, so that neighbours stay apart in A and B in later rounds.
#pragma once

#include <kvbench/methods/merging/merging_cache.hpp>

namespace kvbench {

struct BsmParams {
  MergingParams merging;
  MergeRule::Order order = MergeRule::Order::place;
  PairLimit limit;
};
void fields(ParamVisitor& visitor, BsmParams& params);

MethodInfo bsm_method();

}  // namespace kvbench
