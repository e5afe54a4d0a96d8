// SPDX-License-Identifier: Apache-2.0
// sink: keeps the first few tokens, which receive the attention mass that other tokens do not need (attention sinks),
// and the most recent ones. Positions are counted inside the cache, as if there were no tokens between the two.
// StreamingLLM, arXiv 2309.17453, section 3.2.
//
// A budget of B tokens keeps S = min(sinks, B - 1) first tokens and the R = B - S most recent ones: the newest token is
// always among them, as in the original, whose window is never empty. In prefill both are fixed at the end of the
// context. In decode the window slides: the query at position t is answered by the S sinks and the last R tokens up to
// and including t.
//
// Parameters:
//   sinks       tokens, default 4 (section 4.4; the released default); Chelsea (arXiv 2506.11418) compares with 16
//   reposition  auto (default) | true | false: positions inside the cache as in the original, or those of the trace.
//               The keys of the trace include RoPE, which is a rotation: a sink's key is rotated further by t - (cache
//               size - 1) positions, the number of tokens evicted before the query at t. The keys of the window do not
//               change, nor do their distances to the query. auto: true where the trace has an unscaled RoPE over all
//               of an even head dimension, otherwise false. true: traces without it are `skipped`
// Complexity: O(B d) per query, and O(S d) to rotate the sinks. Memory: B (d + dv) numbers.
// Deviations: the released code keeps keys before RoPE and rotates all of them at every step; the logits are the same.
// For models without rotary positions the released code re-numbers positions as well; here such traces are `skipped` or
// keep their positions.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

struct SinkParams {
  enum class Reposition { when_possible, yes, no };
  Index sinks = 4;
  Reposition reposition = Reposition::when_possible;
};
void fields(ParamVisitor& visitor, SinkParams& params);

MethodInfo sink_method();

/// The cache of the first min(sinks, budget - 1) tokens and the most recent ones, `budget` in all; positions stay.
std::unique_ptr<CompressedCache> sliding_window(const HeadPrompt& head, Index budget, Index sinks, Backend& backend);

}  // namespace kvbench::methods
