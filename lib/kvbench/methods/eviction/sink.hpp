// SPDX-License-Identifier: Apache-2.0
// sink: keeps the first few tokens, where attention parks the mass that it does not need, and the most recent ones.
// Positions are counted inside the cache: the first tokens look as near to the query as if nothing lay between.
// StreamingLLM, arXiv 2309.17453, section 3.2.
//
// A budget of B tokens is S = min(sinks, B - 1) first tokens and the R = B - S most recent: the newest token is always among
// them, as in the original, whose window is never empty. In prefill both are fixed when the context ends. In decode the window
// slides: the query at position t is answered by the S sinks and the last R tokens up to and including t.
//
// Parameters:
//   sinks       tokens, default 4 (section 4.4; the released default); Chelsea (arXiv 2506.11418) compares with 16
//   reposition  auto (default) | true | false: positions inside the cache as the original, or the trace's own. The keys at hand
//               are rotated already and RoPE is a rotation, so a sink's key is turned on by t - (cache size - 1) positions,
//               which is the number of tokens evicted before the query at t; the window's keys stay, their distances to the
//               query do not change. `auto` does so where the trace has a plain RoPE over all of an even head dimension;
//               elsewhere positions stay as they are. `true` skips such traces instead.
// Complexity: O(B d) a query, O(S d) more to turn the sinks. Memory: B (d + dv) numbers.
// Deviations: the released code keeps keys before RoPE and rotates all of them at every step; the logits are the same. With
// models whose positions are not rotary the released code re-numbers positions as well; here that is `skipped` or not done.
#pragma once

#include <kvbench/methods/contract/info.hpp>

namespace kvbench {

struct SinkParams {
  enum class Reposition { when_possible, yes, no };
  Index sinks = 4;
  Reposition reposition = Reposition::when_possible;
};
void fields(ParamVisitor& visitor, SinkParams& params);

MethodInfo sink_method();

}  // namespace kvbench
