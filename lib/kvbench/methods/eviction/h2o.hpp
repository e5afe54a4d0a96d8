// SPDX-License-Identifier: Apache-2.0
// h2o: keeps the tokens with the largest accumulated attention, the heavy hitters, and the most recent tokens. Each
// step adds its attention to the scores of the tokens that it read; then the token with the lowest score outside the
// recent window is evicted. H2O, arXiv 2306.14048, section 4 and Algorithm 1.
//
// A budget of B tokens is split into heavy = floor(heavy * B) tokens outside the recent window and recent = B - heavy
// most recent ones. In prefill this set is fixed at the end of the context. In decode the query at position t is
// answered by the B tokens kept and its own token; its attention over these B + 1 tokens is added to their scores (the
// first score of a new token is the attention of its own query), and one token is evicted afterwards. Ties evict the
// oldest.
//
// Parameters:
//   heavy   share of the budget for heavy hitters, default 0.5 (paper, section 5; released scripts give both halves the
//           same)
//   prompt  columns (default: the released real-drop code) | stream. columns: scores are the column sums of the
//           prompt's full causal attention map, and the prompt is reduced to B tokens once. stream: greedy eviction
//           from token 0 on, as in Algorithm 1: each query of the prompt attends to the tokens that are held at its
//           time
//   per     kv_head (default): one selection for the query group, as in kvpress (ObservedAttentionPress) | query_head:
//           one for each query head, as in the released real-drop code, which fits models whose query heads have a kv
//           head each
//   reduce  mean (default, as in kvpress) | max | sum of the scores accumulated by each query head, per=kv_head only;
//           sum and mean order tokens alike
// Complexity: O(B) per step and query head; prompt=stream O(n^2 d) once per budget, columns O(n).
// Memory: B + 1 keys and values and their scores, with per=query_head for each query head.
// Deviations: the streaming variant of the released code re-numbers positions inside the cache; here keys keep their
// positions. Where the harness keeps tokens itself (--protect), prompt=stream attends to the tokens of the context
// only.
#pragma once

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/stages/parameters.hpp>

namespace kvbench::methods {

struct H2oParams {
  enum class Prompt { columns, stream };
  double heavy = 0.5;
  Prompt prompt = Prompt::columns;
  GroupChoice group{.per = GroupChoice::Per::kv_head};
};
void fields(ParamVisitor& visitor, H2oParams& params);

/// floor(share * budget), with a tolerance for products such as 0.1 * 30, whose rounding error would give 2.
Index heavy_tokens(double share, Index budget);

MethodInfo h2o_method();

}  // namespace kvbench::methods
