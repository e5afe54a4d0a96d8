// SPDX-License-Identifier: Apache-2.0
// The cost of methods on a short synthetic head, from which the cost of a sweep is extrapolated.
#pragma once

#include <kvbench/sweep/plan.hpp>

namespace kvbench::sweep {

/// The cost of replaying one kv head with one method: all budgets, one seed.
struct HeadCost {
  double seconds = 0;      ///< processor time, without the exact pass
  double attending = 0;    ///< the fraction of it that grows with the number of queries
  double cells_bytes = 0;  ///< of the stored cell
  bool ran = false;        ///< whether any of its configurations had status ok
};

struct PilotCost {
  Index context = 0, queries = 0;  ///< of the pilot
  double shared_seconds = 0;       ///< processor time that all methods share: reading, the exact pass
  std::vector<HeadCost> methods;   ///< by ReplayRequest::methods
};

/// Replays a synthetic head with the shape of the step's trace, a context of at most `context` tokens, and at most 64 queries.
/// Budgets and protected tokens are scaled with the context.
PilotCost run_pilot(const SweepStep& step, Index context);

}  // namespace kvbench::sweep
