// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/replay/head.hpp>

namespace kvbench {

/// Runs every cell of one unit, whose heads were read, and stores the results of its heads at results.heads[unit.first_result
/// ...]. Faults of a method become statuses of its cells; memory exhaustion, I/O errors and interruption are thrown.
void run_unit(const trace::Reader& reader, const ReplayPlan& plan, const Unit& unit, const ReplayRequest& request,
              std::vector<HeadSlabs> slabs, Backend& backend, const std::atomic<bool>* stop, ReplayResults& results);

}  // namespace kvbench
