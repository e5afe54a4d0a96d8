// SPDX-License-Identifier: Apache-2.0
// mesh: every token is linked to its most similar token among all others, and the tokens of the best links are merged.
// The costly reference among the matchings of Chelsea, arXiv 2506.11418, section 5.2 and Table 1.
//
// The text says only that the cosine of all pairs is computed. This reading: each entry is linked to its most similar
// other entry; links are taken by falling similarity (ties: that of the lower entry) until the round has removed the
// required number of entries. A link between two entries that are already connected, such as the second of a mutual
// pair, removes nothing and is skipped. Links chain: connected entries are one group, merged to the degree-weighted
// mean. A group takes the place of its first entry, and the order is kept. Every group of the full graph has at least
// two entries, so that a round can always remove half of the middle. Rounds, budget, decoding and answers are those of
// `chelsea` without chunks and outlier heads.
//
// Parameters:
//   sinks    tokens never merged, default 16 (section 7.1)
//   recent   last tokens not merged, default 64 (section 7.1)
//   slack    entries freed at once while decoding, default 128 (as in `chelsea`)
//   ratio, decay, floor   share of the middle that a round removes (as in `chelsea`), defaults 0.5, 0, 0.05
//   max_pairs   limit of cosines per round, default 2^37 (no source; minutes); above, `infeasible`. 370k tokens remain
//               below it
// Complexity: O(M^2 d) for the first round over M middle tokens, four times `bsm`; O(B d) per query. Similarities are
// searched in tiles and never stored.
// Memory: B (d + dv) numbers and B degrees.
// Deviations: none known; the paper reports only the complexity of this matching, no results.
#include <kvbench/methods/merging/merging_cache.hpp>
#include <kvbench/methods/merging/methods.hpp>

namespace kvbench::methods {
namespace {

struct MeshParams {
  MergingParams merging;
  PairLimit limit;
};
void fields(ParamVisitor& visitor, MeshParams& params) {
  fields(visitor, params.merging);
  fields(visitor, params.limit);
}

MakeCache prepare(const HeadPrompt& head, const MeshParams& params, Backend& backend) {
  return prepare_merging(head, {.matching = MergeRule::Matching::mesh, .method = "mesh", .limit = params.limit},
                         params.merging, backend);
}

}  // namespace

MethodInfo mesh_method() {
  return with_params<MeshParams>(
      {
          .name = "mesh",
          .paper = "Chelsea, arXiv 2506.11418, section 5.2 and Table 1",
          .summary = "every token linked to its most similar one among all pairs, merged by degree",
          .notes = "The text gives only the complexity of the matching; the chaining of links and the place of a group "
                   "are this project's reading. Quadratic: `infeasible` above mesh.max_pairs.",
          .complexity = {.compress = {"O(n^2 d)", 2}, .memory = {"B (d + dv) + B"}},
          .kind = Kind::merging,
          .streaming = true,
          .properties = merging_properties(),
      },
      prepare);
}

}  // namespace kvbench::methods
