// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <kvbench/replay/exact/head.hpp>
#include <kvbench/replay/records/results.hpp>

namespace kvbench {

struct WorkItemHooks {
  const std::atomic<bool>* stop;  ///< as ReplayHooks::stop
  const PartDone& part_done;
};

/// Runs the configurations of a work item, whose heads are in `slabs`, and stores their measurements in `results`, one per head
/// of the item. Faults of a method become statuses of its configurations; memory exhaustion, I/O errors and interruption are
/// thrown.
void run_work_item(const trace::Reader& reader, const ReplayPlan& plan, const WorkItem& item, const ReplayRequest& request,
                   const RunOptions& options, std::vector<HeadSlabs> slabs, Backend& backend, const WorkItemHooks& hooks,
                   std::span<HeadResult> results);

}  // namespace kvbench
