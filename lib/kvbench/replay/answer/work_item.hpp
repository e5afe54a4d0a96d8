// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <kvbench/replay/exact/head.hpp>

namespace kvbench {

/// Runs the configurations of a work item, whose heads were read, and stores what they measured in `results`, one for each head of the
/// item. Faults of a method become statuses of its configurations; memory exhaustion, I/O errors and interruption are thrown.
void run_work_item(const trace::Reader& reader, const ReplayPlan& plan, const WorkItem& item, const ReplayRequest& request,
                   const RunOptions& options, std::vector<HeadSlabs> slabs, Backend& backend, const std::atomic<bool>* stop, std::span<HeadResult> results);

}  // namespace kvbench
