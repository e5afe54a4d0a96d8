// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/replay/plan/plan.hpp>

namespace kvbench {

/// Replays a trace: one exact pass over each (kv head, block of queries), shared by all methods, budgets, seeds and metrics.
/// Parallel over units; results stand in plan order and do not depend on the number of threads. Throws Error (bad request or
/// trace), IoError, std::bad_alloc, Interrupted.
ReplayResults replay(const trace::Reader& reader, const ReplayRequest& request, const RunOptions& options = {},
                     const ReplayHooks& hooks = {});

/// What replay() of this request would say about itself.
ReplayFrame replay_frame(const trace::Reader& reader, const ReplayPlan& plan, const ReplayRequest& request,
                         const RunOptions& options);

/// The head of `plan` at `index`, with all cells of the plan and nothing in them.
HeadResult empty_head(const trace::TraceInfo& trace, const ReplayPlan& plan, std::size_t index);

/// Takes what a unit computed: the unit's index in the plan, and its heads, of whose cells only those of the unit's methods are
/// filled.
using UnitSink = std::function<void(std::size_t unit, std::vector<HeadResult> heads)>;

/// Replays the units of `plan`, which may be a part of what make_plan() gave, and hands each to `take` when it is done, one at
/// a time, in any order. Throws as replay() does, and what `take` throws.
void replay_units(const trace::Reader& reader, const ReplayPlan& plan, const ReplayRequest& request, const RunOptions& options,
                  const ReplayHooks& hooks, const UnitSink& take);

}  // namespace kvbench
