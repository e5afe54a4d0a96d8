// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/replay/plan/plan.hpp>

namespace kvbench::replay {

/// Throws Unavailable, with the remedy, where the method cannot run on this layer of a prompt. `decodes`: decoded
/// tokens are appended to the method's cache.
void check_available(const MethodChoice& method, const trace::LayerInfo& layer, const PromptPlan& prompt, bool decodes);

/// Why the method can run in no layer of the prompt, with the remedy; empty if it can in one.
std::string why_nowhere(const MethodChoice& method, const trace::PromptInfo& prompt, const PromptPlan& plan);

/// What rows of a method report beside its own notes. `whole`: of a layer that is kept exactly, without the method.
std::vector<methods::Note> notes_on(const MethodChoice& choice, const ReplayRequest& request,
                                    const trace::TraceInfo& trace, bool whole);

/// Which methods a replay of one prompt with default options and parameters runs in its layers, those without sliding
/// windows and capped logits.
struct RunnableMethods {
  std::vector<std::string> can, cannot;  ///< names; `cannot`: the trace lacks their data
  std::string error;                     ///< why no replay is possible; otherwise empty
};
/// One element per prompt.
std::vector<RunnableMethods> runnable_methods(const trace::TraceInfo& trace);

}  // namespace kvbench::replay
