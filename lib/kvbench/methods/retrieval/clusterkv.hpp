// SPDX-License-Identifier: Apache-2.0
// clusterkv: the keys of the prompt are clustered by direction, and a query is answered by the tokens of the clusters
// whose centroids have the largest inner products with it, recalled from the full cache. Tokens of similar keys are
// recalled together, wherever they are in the text. ClusterKV, arXiv 2412.03213, sections III and IV. `clusterkv-repo`
// is the method of the released accuracy code.
//
// The first `sinks` tokens answer every query and are not clustered. The other keys of a prompt of L tokens form C0
// clusters by Lloyd's loop from C0 random distinct tokens (those with the lowest draws; equal keys may start two
// clusters). Tokens are assigned by normalised keys and centroids, centroids are means of the keys as they are, an
// empty cluster keeps its centroid, and the loop ends when no label changes. A query ranks all clusters by <q,
// centroid> and takes their tokens until the sinks and these tokens fill the budget B. In decode the new tokens answer
// every query, beyond B, until there are `every` of them: after the query of the last of these they form `added`
// clusters of their own, which compete with the others for B from then on.
//
// Parameters (c = clusterkv, r = clusterkv-repo):
//   sinks       tokens, default 16 (section III-B; the released default); a budget of fewer tokens keeps the first B
//               only
//   clusters    C0; c: default 0 = one per `tokens_per_cluster` tokens, at least 1; r: default 400 (released default)
//   tokens_per_cluster   c only, default 80 (section III-B), of L with the sinks
//   distance    cosine (default, section III-B) | l2 | ip: of the clustering (their ablation, Fig. 11b)
//   iterations  c: default 300 (a cap, no source: the text iterates until labels are fixed); r: default 20 (released
//               default). Where the cap stops the loop, tokens are assigned once more to the last centroids, as in the
//               released code
//   every       c only: decoded tokens between clusterings, default 320 (section III-B); 0: they are never clustered. r
//               never clusters them: all generated tokens answer every query
//   added       c only: clusters of `every` decoded tokens, default 4 (section III-B)
//   fill        trim (default, section IV-C and the released default): the last cluster is cut to its earliest tokens,
//               so that exactly B tokens answer | pad (released option): it is taken whole, so that more than B tokens
//               may answer a query; the released code then pads the lists of a layer's heads to one length with tokens
//               of weight zero, which are omitted here
//   per         query_head (default, as in the released code) | kv_head: one ranking for the query group
//   reduce      mean (default; with per=kv_head the released gqa_policy=qavg) | max | sum of the group's inner products
//   max_pairs   limit of iterations n C0, default 2^38 (no source; minutes, as labels are fixed long before the cap);
//               above, `infeasible`. With C0 = n/80 and the cap of 300 iterations 270k tokens remain below it; r:
//               default 2^37
// Complexity: clustering O(iterations n C0 d) per seed, shared by all budgets. With C0 = n/80 this grows with n^2: at n
// = 32768 an iteration costs 3.4 GFlop at d = 128, so that tens of iterations may cost more than the exact pass over
// the queries that a trace holds. A query costs O(C d) and O(C + B) to rank and list, per query head.
// Memory: the full cache on the slow tier; on the fast tier the sinks, the unclustered tail, C centroids with sizes and
// offsets, the sorted token ids and G B selected ones. The device cache of recent clusters is not counted; the metrics
// cache_hit_* simulate it.
// Deviations: selection and attention run in fp32. The released GPU selection pads its scores with the smallest
// positive float, so that negative scores rank below the padding; here they rank by value. The released efficiency code
// counts sinks outside the budget; here, as in the accuracy code and in section V, they count. The released code always
// keeps the first two layers whole (--dense-layers 2).
#pragma once

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/retrieval/cluster_index.hpp>
#include <kvbench/methods/stages/pair_limit.hpp>

namespace kvbench::methods {

struct ClusterkvParams {
  Index sinks = 16;
  Index clusters = 0;
  Index tokens_per_cluster = 80;
  Distance distance = Distance::cosine;
  Index iterations = 300;
  Index every = 320;
  Index added = 4;
  Fill fill = Fill::trim;
  GroupChoice group;
  PairLimit limit{.pairs = 0x1p38};  ///< labels are fixed long before `iterations`
};
void fields(ParamVisitor& visitor, ClusterkvParams& params);

struct ClusterkvRepoParams {
  Index sinks = 16;
  Index clusters = 400;
  Distance distance = Distance::cosine;
  Index iterations = 20;
  Fill fill = Fill::trim;
  GroupChoice group;
  PairLimit limit;
};
void fields(ParamVisitor& visitor, ClusterkvRepoParams& params);

MethodInfo clusterkv_method();
MethodInfo clusterkv_repo_method();

}  // namespace kvbench::methods
