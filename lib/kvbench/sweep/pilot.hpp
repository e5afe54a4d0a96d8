// SPDX-License-Identifier: Apache-2.0
// The cost of methods on a short synthetic head, from which the cost of a sweep is extrapolated.
#pragma once

#include <map>

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

/// Replays of synthetic heads. What several steps have in common is measured once: the exact pass on a head of the same
/// shape, and a method with its parameters and budgets on it.
class Pilots {
 public:
  /// Replays a synthetic head with the shape of the step's trace, a context of at most `context` tokens, and at most 64
  /// queries. Budgets and protected tokens are scaled with the context.
  PilotCost run(const SweepStep& step, Index context);

  /// Number of methods that were measured.
  std::size_t measured() const { return methods_.size(); }

 private:
  struct Shared {
    double seconds = 0;
    Index queries = 0;
  };
  std::map<std::string, Shared> shared_;     ///< by shape and settings
  std::map<std::string, HeadCost> methods_;  ///< by shape, settings, budgets, method and parameters
};

}  // namespace kvbench::sweep
