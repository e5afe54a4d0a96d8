// SPDX-License-Identifier: Apache-2.0
// mesh: every token looks for its most similar token, all pairs compared, and the best links merge. The costly reference among
// the matchings of Chelsea, arXiv 2506.11418, section 5.2 and Table 1.
//
// The text says only that the cosine of all pairs is computed. This reading: each entry is linked to its best other entry;
// links are taken by falling similarity (ties: the lower entry's), until as many entries are gone as the round is to remove. A
// link between two entries that are connected already, such as the second of a mutual pair, removes nothing and is passed over.
// Links chain: what they connect is one group, merged to the degree-weighted mean. A group stands at the place of its first
// entry, order is kept. Every group of the full graph has two entries or more, so half of the middle can always go in a round.
// Rounds, budget, decoding and answers are those of `chelsea` without chunks and outlier heads.
//
// Parameters:
//   sinks    tokens never merged, default 16 (section 7.1)
//   recent   last tokens not merged, default 64 (section 7.1)
//   slack    entries freed at once while decoding, default 128 (as `chelsea`)
//   ratio, decay, floor   share of the middle that a round removes (as `chelsea`), defaults 0.5, 0, 0.05
//   max_pairs   cosines of a round, default 2^37 (no source; minutes): above, `infeasible`. 370k tokens stay below it
// Complexity: O(M^2 d) for the first round over M middle tokens, four times `bsm`; O(B d) a query. Similarities are searched in
// tiles and never stored. Memory: B (d + dv) numbers and B degrees.
// Deviations: the paper reports no result for it, its complexity alone.
#pragma once

#include <kvbench/methods/merging/merging_cache.hpp>

namespace kvbench {

struct MeshParams {
  MergingParams merging;
  PairLimit limit;
};
void fields(ParamVisitor& visitor, MeshParams& params);

MethodInfo mesh_method();

}  // namespace kvbench
