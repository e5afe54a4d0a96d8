// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <kvbench/replay/exact/head.hpp>

namespace kvbench {

/// Runs the cells of one unit's methods, whose heads were read, and stores them in `results`, one for each head of the unit.
/// Faults of a method become statuses of its cells; memory exhaustion, I/O errors and interruption are thrown.
void run_unit(const trace::Reader& reader, const ReplayPlan& plan, const WorkItem& unit, const ReplayRequest& request,
              const RunOptions& options, std::vector<HeadSlabs> slabs, Backend& backend, const std::atomic<bool>* stop,
              std::span<HeadResult> results);

}  // namespace kvbench
