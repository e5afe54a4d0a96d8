// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/replay/plan.hpp>

namespace kvbench {

/// Replays a trace: one exact pass over each (kv head, block of queries), shared by all methods, budgets, seeds and metrics.
/// Parallel over units; results stand in plan order and do not depend on the number of threads. Throws Error (bad request or
/// trace), IoError, std::bad_alloc, Interrupted.
ReplayResults replay(const trace::Reader& reader, const ReplayRequest& request, const ReplayHooks& hooks = {});

}  // namespace kvbench
