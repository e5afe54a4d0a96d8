// SPDX-License-Identifier: Apache-2.0
// infinigen: the whole cache lies in slow memory; one layer ahead, a guess of the query and a few skewed channels of the keys
// tell which tokens to fetch. InfiniGen, arXiv 2406.19707, section 4.
//
// Skewing: A = right singular vectors of the observed queries of a head, by increasing singular value; <q A, k A> = <q, k>.
// Of the columns of A those with the largest sum of |q A| are kept, and with them the partial keys of every token. The guess q'
// of a query is the query weight of its layer applied to the attention input of the layer before it, rotated: the trace's
// `speculated_queries`. Scores are scale * <q' A, k A> over the kept columns. The highest of them are fetched, ties to the
// lower token; the query's own token, whose key is there anyway, is always attended, inside the budget.
//
// Parameters:
//   query      auto (default: the speculated query where the trace has it, else the true one, which the row's `reason` says) |
//              speculated (skipped without) | true (an upper bound)
//   columns    q (default, speed code): int(ratio d) columns by |q A| | union (accuracy code): these and as many by |k A|
//   ratio      default 0.2 (speed code and the setup of the accuracy code); at least one column
//   fetch      fixed (default): B tokens, as ClusterKV (arXiv 2412.03213) compares | dynamic: as many as have a score of at
//              least max - alpha, on average over all heads of the layer, rounded down, the same number for all heads
//   alpha      default 4 (speed code; accuracy code 5), fetch=dynamic
//   max_share  of the visible tokens, default 0.2 (both codes): int(max_share n) bounds a dynamic fetch; so does B
//   threshold  head (default, speed code): max over the head's own scores | head0 (accuracy code for Llama): over head 0's
//   per        query_head (default) | kv_head: one skewing, one set of columns and one choice for the group
//   reduce     mean (default) | max | sum over the group's query heads, per=kv_head only (no source)
// Complexity: O(n c + B d) a query and query head for c columns, on rows of its own (see quest); once O((m + n) d^2) and an
// eigenproblem of d x d a head. Memory: the full cache on the slow tier, c numbers a token and query head on the fast one.
// Deviations: A comes from the queries that the trace has observed in this context, not from a sample text. Where G query heads
// share a kv head (the paper has none), each has its own A and partial keys. Layers 0 and 1 are dense in the released code:
// --dense-layers 2. The limit on the slow tier, which evicts from it, is not replayed. In the accuracy code the query's own
// token competes like the others.
#pragma once

#include <kvbench/methods/stages/group.hpp>
#include <kvbench/methods/contract/info.hpp>

namespace kvbench {

struct InfinigenParams {
  enum class Query { when_present, speculated, truth };
  enum class Columns { by_queries, by_both };
  enum class Fetch { fixed, dynamic };
  enum class Threshold { own_head, head_zero };
  Query query = Query::when_present;
  Columns columns = Columns::by_queries;
  double ratio = 0.2;
  Fetch fetch = Fetch::fixed;
  double alpha = 4;
  double max_share = 0.2;
  Threshold threshold = Threshold::own_head;
  GroupChoice group;
};
void fields(ParamVisitor& visitor, InfinigenParams& params);

MethodInfo infinigen_method();

}  // namespace kvbench
