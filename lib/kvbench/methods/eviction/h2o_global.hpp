// SPDX-License-Identifier: Apache-2.0
// h2o-global: the simulation of H2O by masks that evaluations often run in its place: the columns of the context's full
// attention map with the largest sums, for every query the same, and a band of recent tokens below the diagonal. H2O, arXiv
// 2306.14048; the variant "based on global statistics" of its public evaluation code.
//
// A budget of B tokens is the top floor(heavy * B) of all columns of the context's causal map, recent ones not excluded, never
// updated; ties to the lower token. The query at position t is answered by them and by the tokens t - recent .. t, recent = B
// minus the heavy ones: with its own token B + 1 at most, and fewer where heavy tokens lie in the band. In prefill the band
// ends with the context, whose last `recent` tokens it is: the harness adds the tail.
//
// Parameters:
//   heavy   share of the budget for columns, default 0.5, rounded down (released scripts: equal ratios, truncated)
//   per     query_head (default: released code) | kv_head
//   reduce  mean (default) | max | sum of the group's column sums, per=kv_head only (no source)
// Complexity: O(n log n) once a budget, O(B) a query. Memory: B + 1 keys and values, for each query head where per=query_head.
// Deviations: the simulation sums over the evaluated queries too; here columns are those of the context, so that no query helps
// to choose what answers it.
#pragma once

#include <kvbench/methods/stages/group.hpp>
#include <kvbench/methods/contract/info.hpp>

namespace kvbench {

struct H2oGlobalParams {
  double heavy = 0.5;
  GroupChoice group;
};
void fields(ParamVisitor& visitor, H2oGlobalParams& params);

MethodInfo h2o_global_method();

}  // namespace kvbench
