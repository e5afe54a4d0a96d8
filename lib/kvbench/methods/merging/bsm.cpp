// SPDX-License-Identifier: Apache-2.0
// bsm: bipartite soft matching over the whole middle of the cache. Each token at an even place is linked to the most
// similar token at an odd place, the tokens of the best links are merged, and merged entries answer with the number of
// tokens in them. ToMe, arXiv 2210.09461, section 3, on keys as in Chelsea, arXiv 2506.11418, section 5.2 and Table 1.
//
// Rounds, budget, decoding and answers are those of `chelsea` with one chunk, the whole middle, and no outlier heads.
// Similarities are searched in tiles and never stored, so that a context of 32k tokens needs no memory beyond its keys.
//
// Parameters:
//   sinks    tokens never merged, default 16 (Chelsea section 7.1); ToMe protects its class token only
//   recent   last tokens not merged, default 64 (Chelsea section 7.1)
//   slack    entries freed at once while decoding, default 128 (as in `chelsea`)
//   ratio, decay, floor   share of the middle that a round removes (as in `chelsea`), defaults 0.5, 0, 0.05
//   order    place (default) | concat: the remaining entries of A before B, as released with ToMe
//   max_pairs   limit of cosines per round, default 2^37 (no source; minutes); above, `infeasible`. 740k tokens remain
//               below it
// Complexity: O(M^2 d / 4) for the first round over M middle tokens, more than an exact pass over fewer than M/8
// queries, and a quarter for each round after it; O(B d) per query.
// Memory: B (d + dv) numbers and B degrees.
// Deviations: ToMe merges a fixed number of tokens inside each block of a vision transformer; here the number follows
// from the budget. `order=place` keeps the order of the text, so that neighbours remain in different sets A and B in
// later rounds.
#include <kvbench/methods/merging/merging_cache.hpp>
#include <kvbench/methods/merging/methods.hpp>

namespace kvbench::methods {
namespace {

struct BsmParams {
  MergingParams merging;
  MergeRule::Order order = MergeRule::Order::place;
  PairLimit limit;
};
void fields(ParamVisitor& visitor, BsmParams& params) {
  fields(visitor, params.merging);
  fields(visitor, params.order);
  fields(visitor, params.limit);
}

MakeCache prepare(const HeadPrompt& head, const BsmParams& params, Backend& backend) {
  return prepare_merging(head, {.chunk = 0, .order = params.order, .method = "bsm", .limit = params.limit},
                         params.merging, backend);
}

}  // namespace

MethodInfo bsm_method() {
  return with_params<BsmParams>(
      {
          .name = "bsm",
          .aliases = {"tome"},
          .paper = "ToMe, arXiv 2210.09461, section 3; as in Chelsea, arXiv 2506.11418, Table 1",
          .summary = "bipartite soft matching of keys over the whole context, weighted by degree",
          .notes = "One chunk; rounds, sinks, recent tokens and decoding as in `chelsea`. The released ToMe places A "
                   "before B after a round (order=concat); the default keeps the order of the text.",
          .complexity = {.compress = {"O(n^2 d / 4)", 2}, .memory = {"B (d + dv) + B"}},
          .kind = Kind::merging,
          .streaming = true,
          .properties = merging_properties(),
      },
      prepare);
}

}  // namespace kvbench::methods
