// SPDX-License-Identifier: Apache-2.0
// h2o-global: the simulation of H2O by masks that evaluations often use in its place: the columns of the context's full
// attention map with the largest sums, the same for every query, and a band of recent tokens below the diagonal. H2O,
// arXiv 2306.14048; the variant "based on global statistics" of its public evaluation code.
//
// A budget of B tokens keeps the top floor(heavy * B) columns of the context's causal map, recent ones included. They
// are never updated; ties go to the lower token. The query at position t is answered by them and by the tokens t -
// recent .. t, recent = B minus the heavy ones: with its own token at most B + 1, and fewer where heavy tokens lie in
// the band. In prefill the band is the last `recent` tokens of the context; the harness adds the tail.
//
// Parameters:
//   heavy   share of the budget for columns, default 0.5, rounded down (released scripts: equal ratios, truncated)
//   per     query_head (default: released code) | kv_head
//   reduce  mean (default) | max | sum of the column sums of the query group, per=kv_head only (no source)
// Complexity: O(n log n) once per budget, O(B) per query. Memory: B + 1 keys and values, for each query head where
// per=query_head.
// Deviations: the simulation also sums over the evaluated queries; here the columns are those of the context, so that
// no query contributes to the choice of the tokens that answer it.
#pragma once

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/stages/group.hpp>

namespace kvbench::methods {

struct H2oGlobalParams {
  double heavy = 0.5;
  GroupChoice group;
};
void fields(ParamVisitor& visitor, H2oGlobalParams& params);

MethodInfo h2o_global_method();

}  // namespace kvbench::methods
