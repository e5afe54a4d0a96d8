// SPDX-License-Identifier: Apache-2.0
// h2o: keeps the tokens that have gathered the most attention so far, the heavy hitters, and the most recent ones. Every step
// adds its attention to the scores of the tokens that it read; then the least of those outside the recent window is evicted.
// H2O, arXiv 2306.14048, section 4 and Algorithm 1.
//
// A budget of B tokens is heavy = floor(heavy * B) tokens outside the recent window and recent = B - heavy most recent ones. In
// prefill this set is fixed when the context ends. In decode the query at position t is answered by the B tokens kept and its
// own, its attention over these B + 1 is added to their scores (a new token's first score is the attention of its own query),
// and one is evicted afterwards; ties evict the oldest.
//
// Parameters:
//   heavy   share of the budget for heavy hitters, default 0.5 (paper, section 5; released scripts give both halves the same)
//   prompt  columns (default: the released real-drop code) | stream. columns: scores are the sums of the prompt's full causal
//           attention map, the prompt is cut once. stream: greedy eviction from token 0 on, as Algorithm 1: each query of the
//           prompt attends to what is held by then.
//   per     query_head (default: the released code repeats keys over the group before it selects) | kv_head
//   reduce  mean (default) | max | sum of the scores accumulated by each query head, per=kv_head only (no source); sum and mean
//           order tokens alike
// Complexity: O(B) a step and query head; prompt=stream O(n^2 d) once a budget, columns O(n).
// Memory: B + 1 keys and values, and a score of each, for each query head where per=query_head.
// Deviations: the released code re-numbers positions inside the cache in its streaming variant; here keys keep theirs. Where
// the harness keeps tokens of its own (--protect), prompt=stream attends to the context's tokens alone.
#pragma once

#include <kvbench/methods/stages/group.hpp>
#include <kvbench/methods/contract/info.hpp>

namespace kvbench {

struct H2oParams {
  enum class Prompt { columns, stream };
  double heavy = 0.5;
  Prompt prompt = Prompt::columns;
  GroupChoice group;
};
void fields(ParamVisitor& visitor, H2oParams& params);

/// floor(share * budget), for a share such as 0.1 of 30 too, whose product falls short of 3 in its last bit.
Index heavy_tokens(double share, Index budget);

MethodInfo h2o_method();

}  // namespace kvbench
