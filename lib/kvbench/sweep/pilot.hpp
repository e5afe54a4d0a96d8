// SPDX-License-Identifier: Apache-2.0
// A short head that stands for the long ones of a sweep.
#pragma once

#include <kvbench/sweep/plan.hpp>

namespace kvbench::sweep {

/// What replaying one kv head with one method costs: all budgets, one seed.
struct HeadCost {
  double seconds = 0;      ///< of the processor, beyond the exact pass
  double attending = 0;    ///< share of it that grows with the number of queries
  double cells_bytes = 0;  ///< of the stored cells
  bool ran = false;        ///< some cell of it was ok
};

struct PilotCost {
  Index context = 0, queries = 0;  ///< of the pilot
  double shared_seconds = 0;       ///< what all methods share: reading, the exact pass
  std::vector<HeadCost> methods;   ///< by ReplayRequest::methods
};

/// Replays a synthetic head of the shape of the step's trace with a context of `context` tokens, or as many as the step has,
/// and at most 64 queries. Budgets and protected tokens keep their share of the context.
PilotCost run_pilot(const SweepStep& step, Index context);

}  // namespace kvbench::sweep
