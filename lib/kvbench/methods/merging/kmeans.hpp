// SPDX-License-Identifier: Apache-2.0
// kmeans: the keys of the context are clustered, and each cluster answers as one token: the mean of its keys, the mean
// of its values and the number of its tokens as weight. The baseline "K-Means" of Chelsea, arXiv 2506.11418, Table 1,
// with the weighted attention of its Eq. 2.
//
// For a budget of B tokens, B < n, Lloyd's loop starts from the tokens floor(i n / B), i = 0 .. B - 1. Centroids are
// means of the keys, not normalised; an empty cluster keeps its centroid during the loop and has no entry. B >= n keeps
// all tokens. Decoded tokens are kept exactly. An entry has the id of its cluster's last token, so that a cluster is
// visible only to queries that may attend to all of its tokens.
//
// Parameters:
//   distance    cosine (default: the metric of Chelsea's section 3) | l2
//   iterations  default 10 (no source: the text gives only the complexity); fewer where labels are fixed before
//   max_pairs   limit of iterations n B, default 2^37 (no source; minutes); above, `infeasible`
// Complexity: O(iterations n B d) per budget, more than the exact pass over a window of W queries as soon as iterations
// * B > W
// * G: this is the cost that Chelsea's Table 1 criticises.
// Memory: B (d + dv) numbers and B weights.
// Deviations: sinks and recent tokens are clustered like all others; --protect keeps them, as in Chelsea's comparison
// (16 and 64).
#pragma once

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/stages/lloyd.hpp>
#include <kvbench/methods/stages/pair_limit.hpp>

namespace kvbench::methods {

struct KmeansParams {
  Distance distance = Distance::cosine;  ///< cosine or l2
  Index iterations = 10;
  PairLimit limit;
};
void fields(ParamVisitor& visitor, KmeansParams& params);

MethodInfo kmeans_method();

}  // namespace kvbench::methods
