// SPDX-License-Identifier: Apache-2.0
// cam: evicts as StreamingLLM does. A value that leaves the window is added in equal shares to the values after it,
// with a probability that grows with the attention that its token has received. Keys and the denominator do not change.
// CaM, ICML 2024 (Zhang, Du, Luo, Zhong, Zhang, Liu, Ji), and the three forms of its released code, which differ.
//
// A budget of B tokens keeps S = min(start, B - 1) first tokens and R = B - S recent ones. Merging token i adds v_i / m
// to the values of the m tokens after it. v_i includes the shares that were merged into it before. i is merged with
// probability
//   streaming  A_i / mean of A over the m tokens after i, in the step after which i leaves the window. A = attention
//              summed over all steps up to this one. Queries read S + R + 1 tokens.
//   eval       A_i / max of A over the first S tokens and i .. i+R-1, before query i + R is answered, which still reads
//              i: a band of R + 1. A = sums over the queries before it.
//   decode     a_i / mean of a over the rest of the window, a = attention of the current step only. i is the token that
//              leaves the window two steps later, and it is read once more after its merge. Queries read S + R tokens,
//              their own among them. Tokens of the prompt outside the window are dropped unmerged when decoding starts.
// each clamped to [0, 1], 0/0 = 0; one draw per token and query head.
//
// Parameters:
//   form         streaming (default: generate_task/, perplexity) | eval (cam_hf/utils_lm_eval) | decode
//                (cam_hf/utils_hh)
//   start        S in tokens, default 4 (class default; the example scripts have 32)
//   start_share  S as a share of the budget instead, rounded up for form=eval and down otherwise (as in that code);
//                default 0: not given. The released task scripts give both parts the same share: 0.5
//   merge        m in tokens, default 0: 16 for streaming, R for eval, 32 for decode (released code)
//   prompt       auto (default) | stream | columns: source of A for the prompt, streaming and eval only. stream: the
//                queries of the prompt are replayed from token 0 as in the released code; the trace must hold all of
//                them. columns: the column sums of the prompt's full attention map replace the sums at each time (ours,
//                for traces without the queries). auto: stream where the trace has all queries, otherwise columns,
//                which the row reports
//   per          query_head (default: released code, where each head has its own values) | kv_head
//   reduce       mean (default) | max | sum of the attention of the query group, per=kv_head only (no source); sum and
//                mean are equivalent
// Complexity: O(m dv) per step and query head; the prompt O(n m dv) once per seed, and once per budget O(n^2 d) where
// it is replayed, O(n R) with columns.
// Memory: keys and the first values once, R + 1 values (decode: R) for each query head where per=query_head, and A.
// Deviations: where the window holds fewer than m tokens after i, each of them gets v_i / m, as released. The released
// streaming form re-numbers positions inside the cache; here keys keep theirs (compare with sink.reposition=false). In
// eval all queries of the released code read the final values; here a decoded query reads the values of its own step.
// The released decode form masks all tokens while the cache is not full; here nothing is merged or evicted until then.
#pragma once

#include <kvbench/methods/contract/info.hpp>
#include <kvbench/methods/merging/cam_rule.hpp>

namespace kvbench::methods {

struct CamParams {
  enum class Prompt { when_possible, stream, columns };
  CamForm form = CamForm::streaming;
  Index start = 4;
  double start_share = 0;
  Index merge = 0;
  Prompt prompt = Prompt::when_possible;
  GroupChoice group;
};
void fields(ParamVisitor& visitor, CamParams& params);

/// The rule at a budget of `budget` tokens.
CamRule cam_rule(const CamParams& params, Index budget);

MethodInfo cam_method();

}  // namespace kvbench::methods
