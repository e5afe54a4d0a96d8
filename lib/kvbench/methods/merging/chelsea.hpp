// SPDX-License-Identifier: Apache-2.0
// chelsea: tokens with similar keys are merged into one entry, their mean, which answers with the number of tokens in
// it. Partners are searched inside chunks, between even and odd offsets, because keys are most similar where they are
// near. Chelsea (CentroidKV), arXiv 2506.11418, section 5 and Algorithm 1.
//
// The first `sinks` and the last `recent` tokens are not merged. Rounds of chunked soft matching reduce the middle
// until B entries are left in total. In each round the middle is cut into chunks. In each chunk the even offsets are A
// (an odd chunk has one more), the odd ones B, and each A is linked to the B of its chunk with the largest cosine of
// the keys (ties: the lower). Of the links of all chunks the most similar are kept (ties: the lower A), as many as the
// round removes entries. Linked entries become the mean of their keys and of their values, weighted by degree, and the
// degrees are added. A chunk of one token has no link. Later rounds cut and compare the merged entries anew. A round
// removes `ratio` of the middle, rounded down, but at most half of it, at least one entry, and not more than needed. An
// entry answers with weight = degree in both sums (Eq. 2).
//
// Decoding: tokens are appended to the recent part. When they would exceed B, rounds reduce the cache to B - slack; the
// round number continues. A group has the id of its B token: all of its tokens were visible when it was formed and the
// state changes only with the newest token, so that masking it by that id is causal.
//
// Parameters:
//   sinks    tokens, default 16 (section 7.1), at most B/4
//   recent   tokens, default 64 (section 7.1), at most B/2: below B = 128 the paper's 80 would leave no tokens to merge
//   chunk    entries, default 256 (section 7.1); Table 4 finds little difference from 16 to no chunks
//   slack    entries, default 128 (no source: the number of steps between clusterings is lost), at most half of the
//            middle, B - sinks - recent, so that one round can free it
//   ratio    share of the middle, default 0.5, the largest that the matching allows: the fewest rounds
//   decay    default 0; with `floor`, default 0.05 (no source), the i-th round removes max(ratio - decay * i, floor) of
//            the middle. C.2 lowers the ratio in the first rounds, by numbers for each model that are lost, and keeps
//            it constant for needles in haystacks
//   order    place (default): a group takes the place of its B token | concat: the remaining entries of A, then B, over
//            all chunks (as in ToMe; section 5.2 says so of BSM). A full round at ratio 0.5 leaves no A, and both are
//            the same
//   outliers           none (default) | auto | FILE
//   outlier_ratio      share of the heads, default 0.04 (C.2), rounded up; auto only
//   outlier_threshold  cosine, default 0.8; auto only. The paper's number is lost; on 3840 tokens of prose 0.8 selects
//                      two of 15 heads of five layers of SmolLM2-135M, with 74 % and 41 % unlinked A tokens against
//                      at most 11 % in others
// Outlier heads (appendices B, C.2) keep every token, at the cost of the others: B' = (B H - full n) / (H - full),
// rounded down, where n is the context and `full` the number of outlier heads. Tokens that outlier heads decode are
// kept in addition. In a stream, which has no context, outliers are `skipped`.
//   auto: the heads of a layer with the largest share of A tokens without a link above the threshold in the first
//   round, on the context itself. H are the kv heads of the layer: with 3 of them the rounding keeps a third of the
//   layer whole and leaves little to the others; `infeasible` where B' < 1. The paper selects 4 % of the heads of a
//   whole model.
//   FILE: lines "layer kv_head" from an offline calibration, as in the paper. H are the kv heads of the model, whose
//   layers are assumed to have the same number: the budget holds on average over all of its layers, where a layer with
//   an outlier keeps more and the others less. A trace that lacks layers does not show that average; rows report the
//   actual sizes and a note.
// none is the default because a method sees one layer, and 4 % of that is no head.
// Complexity: O(M c d / 4) for the first round over M middle tokens in chunks of c, at most half for each round after
// it; O(B d) per query.
// Memory: B (d + dv) numbers and B degrees.
// Deviations: the choices above where numbers are lost; budgets are of the context, the paper's of prompt and answer
// together.
#pragma once

#include <string>

#include <kvbench/methods/merging/merging_cache.hpp>

namespace kvbench::methods {

struct ChelseaParams {
  MergingParams merging;
  Index chunk = 256;
  MergeRule::Order order = MergeRule::Order::place;
  std::string outliers = "none";
  double outlier_ratio = 0.04;
  double outlier_threshold = 0.8;
};
void fields(ParamVisitor& visitor, ChelseaParams& params);
/// Throws Error where the file of outlier heads cannot be used.
void check(const ChelseaParams& params);

MethodInfo chelsea_method();

}  // namespace kvbench::methods
