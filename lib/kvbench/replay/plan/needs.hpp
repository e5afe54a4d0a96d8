// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/replay/plan/plan.hpp>

namespace kvbench {

/// Throws Unavailable, with the remedy, where the method cannot run on this layer of a prompt. `decodes`: decoded tokens are appended to
/// the method's cache.
void check_available(const MethodChoice& method, const trace::LayerInfo& layer, const PromptPlan& prompt, bool decodes);

}  // namespace kvbench
