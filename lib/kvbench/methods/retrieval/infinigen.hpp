// SPDX-License-Identifier: Apache-2.0
// infinigen: the whole cache is in slow memory. One layer ahead, a speculated query and a few skewed channels of the
// keys determine which tokens to fetch. InfiniGen, arXiv 2406.19707, section 4.
//
// Skewing: A = right singular vectors of the queries of a head, by increasing singular value; <q A, k A> = <q, k>. The
// columns of A with the largest sum of |q A| are kept, with the partial keys of every token. A comes from the
// calibration text (--calibrate), as in the paper, which computes it once from a sample; without one it comes from the
// observed queries of the context. The speculated query q' is the query weight of the layer applied to the attention
// input of the layer before it, rotated: the trace's `speculated_queries`. Scores are scale * <q' A, k A> over the kept
// columns. The tokens with the highest scores are fetched, ties to the lower token; the query's own token, whose key is
// available in any case, is always attended to, inside the budget.
//
// Parameters:
//   query      auto (default: the speculated query where the trace has it, otherwise the true one, which the row's
//              `reason` reports) | speculated (`skipped` without it) | true (an upper bound)
//   columns    q (default, speed code): int(ratio d) columns by |q A| of the context's observed queries | union
//              (accuracy code): as many by |q A| and as many by |k A|, both of the calibration text
//   ratio      default 0.2 (speed code and the setup of the accuracy code); at least one column
//   fetch      fixed (default): B tokens, as in the comparison of ClusterKV (arXiv 2412.03213) | dynamic: the number of
//              tokens with a score of at least max - alpha, averaged over all heads of the layer and rounded down; the
//              same number for all heads
//   alpha      default 4 (speed code; accuracy code 5), fetch=dynamic
//   max_share  of the visible tokens, default 0.2 (both codes): int(max_share n) and B limit a dynamic fetch
//   threshold  head (default, speed code): max over the scores of the head itself | head0 (accuracy code for Llama): of
//              head 0
//   per        query_head (default) | kv_head: one skewing, one set of columns and one selection for the query group
//   reduce     mean (default) | max | sum over the group's query heads, per=kv_head only (no source)
// Complexity: O(n c + B d) per query and query head for c columns, where each query reads rows of its own (see quest);
// once per head O((m + n) d^2) and an eigenproblem of d x d.
// Memory: the full cache on the slow tier, c numbers per token and query head on the fast one. Deviations: without
// --calibrate, A is computed from the context; the row reports which text was used. Where G query heads share a kv head
// (not in the paper), each has its own A and partial keys. Layers 0 and 1 are dense in the released code:
// --dense-layers 2. The limit of the slow tier and its evictions are not replayed. In the accuracy code the query's own
// token competes like the others.
#pragma once

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/stages/parameters.hpp>

namespace kvbench::methods {

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

}  // namespace kvbench::methods
