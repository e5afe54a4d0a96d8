// SPDX-License-Identifier: Apache-2.0
// retroinfer: keys are clustered, and a query reads the tokens of the clusters with the largest weights, while those of
// the clusters that follow are estimated by their centroid and the sum of their values. The rest is dropped.
// RetroInfer, arXiv 2505.02922, section 4; microsoft/RetrievalAttention, cache_hub/retroinfer_cache_gpu.py and
// kmeans.py.
//
// The S first and W last tokens answer every query. The t tokens between them form C = n / 16 clusters, in
// max(1, n / 8192) segments of equal length: their centred keys (minus their mean) are assigned to the centroid of
// their segment with the largest inner product, 9 times, and a centroid becomes the mean of its tokens divided by its
// norm; it starts as the token in the middle of the c-th part of the context, and stays as it is where no token is
// assigned. Then all tokens are assigned to all centroids, and each centroid becomes the mean of its tokens. A query of
// the group ranks clusters by the softmax of scale <q, centroid> over all clusters, summed over the query heads. The
// best are read whole; the next E are one entry each: key c, value the mean of the values, both with the number of
// tokens as weight.
// The released budget is a share of the clusters, 1.8 % read and 23.2 % estimated. Here of the B - S - W entries that
// are left the share `estimated` is for E, at most C, and clusters are read whole, best first, as long as they fit into
// the others; the first that does not is the first of the estimated ones.
//
// Parameters:
//   sinks      S, tokens, default 4 (released configuration)
//   window     W, tokens, default 64 (released configuration), at most half of what the first tokens leave of the
//              budget
//   tokens_per_cluster   default 16 (released code)
//   segment    tokens of a segment, default 8192 (released code)
//   iterations with normalised centroids, default 9 (released code)
//   estimated  share of E, default 0.446: of the released shares, 0.232 / (0.232 + 0.018 * 16)
//   update     decoded tokens that are clustered together, in clusters of tokens_per_cluster, as soon as there are so
//              many beside the window; until then they answer every query, beyond B. Default 1024 (released code); 0:
//              never
//   least      context in tokens below which the method is infeasible, default 0: the released code leaves contexts
//              below 16384 (+ 68) tokens whole
//   max_pairs  of rows compared per head; above it is infeasible
// Complexity: O(i n C d / segments + n C d) once, i = 9, C = n / 16: more than one exact pass over the queries of a
// replay, which is linear in n. O(C d) per query and query head to rank, O(B (d + dv)) to answer. Each query reads rows
// of its own, and has copies of the estimated ones: a block of queries costs several exact passes at B = n/8.
// Memory: the full cache; a centroid and a sum of values for each cluster, its size and where its tokens begin; the
// tokens are stored in the order of clusters, so that they need no numbers.
// Deviations: numbers of clusters are not rounded to multiples of 8. Clusters without tokens take no part in the
// softmax of the ranking. Tokens of a clustered part that are left over by segments of equal length do not move
// centroids, as there. The cache of the GPU for clusters that were read before is not simulated (metrics cache_hit_*).
#pragma once

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/stages/pair_limit.hpp>

namespace kvbench::methods {

struct RetroinferParams {
  Index sinks = 4;
  Index window = 64;
  Index tokens_per_cluster = 16;
  Index segment = 8192;
  Index iterations = 9;
  double estimated = 0.446;
  Index update = 1024;
  Index least = 0;
  PairLimit limit;
};
void fields(ParamVisitor& visitor, RetroinferParams& params);

MethodInfo retroinfer_method();

}  // namespace kvbench::methods
