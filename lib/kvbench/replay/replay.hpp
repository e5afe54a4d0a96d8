// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/replay/plan/plan.hpp>
#include <kvbench/replay/records/results.hpp>

namespace kvbench::replay {

/// Replays a trace: one exact pass over each block of queries of a kv head, shared by all methods, budgets, seeds and
/// metrics. Work items are computed in parallel; results are in plan order and do not depend on the number of threads.
/// Throws Error (bad request or trace), IoError, std::bad_alloc, Interrupted.
ReplayResults replay(const trace::Reader& reader, const ReplayRequest& request, const RunOptions& options = {},
                     const ReplayHooks& hooks = {});

/// The frame of the results that replay() would return.
ReplayFrame replay_frame(const trace::Reader& reader, const ReplayPlan& plan, const ReplayRequest& request,
                         const RunOptions& options);

/// The kv head of `plan` at `index` with an empty result for every configuration.
HeadResult empty_head(const trace::TraceInfo& trace, const ReplayPlan& plan, std::size_t index);

/// parallel_for() over work items on thread_count() threads: calls work(backend, i, part_done) for i = 0 .. count - 1;
/// each thread has its own back end. hooks.progress is called after each work item and at each call of part_done. Work
/// that needs no back end calls parallel_for() itself.
void run_work_items(std::size_t count, const RunOptions& options, const ReplayHooks& hooks,
                    const std::function<void(Backend&, std::size_t, const PartDone&)>& work);

/// Receives the results of a work item: its index in the plan, and its kv heads, in which only the configurations of
/// the work item's methods are filled.
using WorkItemSink = std::function<void(std::size_t item, std::vector<HeadResult> heads)>;

/// Replays the work items of `plan`, which may be a part of the plan that make_plan() returned, and passes the results
/// of each to `take` when it is complete, one at a time, in any order. Throws as replay() does, and what `take` throws.
void replay_work_items(const trace::Reader& reader, const ReplayPlan& plan, const ReplayRequest& request,
                       const RunOptions& options, const ReplayHooks& hooks, const WorkItemSink& take);

}  // namespace kvbench::replay
