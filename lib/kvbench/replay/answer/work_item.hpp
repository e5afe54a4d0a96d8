// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <optional>
#include <span>

#include <kvbench/replay/exact/head.hpp>
#include <kvbench/replay/measure/spent.hpp>
#include <kvbench/replay/records/results.hpp>

namespace kvbench::replay {

struct WorkItemHooks {
  const std::atomic<bool>* stop;  ///< as ReplayHooks::stop
  const PartDone& part_done;
};

/// The result of prepare() for a method, or its failure.
struct PreparedMethod {
  std::size_t method = 0;  ///< index into ReplayRequest::methods
  methods::MakeLayerCache make;
  std::exception_ptr failure;
  Spent spent;
};

/// Runs the configurations of a work item, whose heads are in `slabs`, and stores their measurements in `results`, one
/// per head of the item. Faults of a method become statuses of its configurations; memory exhaustion, I/O errors and
/// interruption are thrown. `kept`: holds the last method that was prepared, for later runs of the same work item with
/// the same context, backend and methods; null: it is freed when it is not needed any more.
void run_work_item(const trace::TraceInfo& trace, const ReplayPlan& plan, const WorkItem& item,
                   const ReplayRequest& request, const RunOptions& options, std::vector<HeadSlabs> slabs,
                   Backend& backend, const WorkItemHooks& hooks, std::span<HeadResult> results,
                   std::optional<PreparedMethod>* kept = nullptr);

}  // namespace kvbench::replay
