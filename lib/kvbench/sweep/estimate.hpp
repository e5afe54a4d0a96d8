// SPDX-License-Identifier: Apache-2.0
// An estimate of the time, memory and disk space of a sweep before it runs.
#pragma once

#include <kvbench/sweep/plan.hpp>

namespace kvbench::sweep {

struct Estimate {
  double core_seconds = 0;           ///< processor time of the replays, on all threads together
  double seconds = 0;                ///< elapsed time on this machine
  double memory_bytes = 0;           ///< of all work items that are computed at the same time, at most
  double cells_bytes = 0;            ///< of the file of cells
  int threads = 0;                   ///< that compute; 0: nothing is estimated
  std::size_t on_gpu = 0;            ///< cells that a GPU computes, which are not in the estimate
  std::vector<std::string> untimed;  ///< methods that did not run on the first heads
  std::size_t steps = 0;             ///< that compute on the processor
  std::size_t timed_steps = 0;       ///< of these, those whose methods were timed
};

/// Replays the first head of every step of the shard (one for each kind of work item, in a layer in which methods run)
/// with the first seed, on one thread; the others are taken to cost as much in proportion to their tokens, and further
/// seeds as much as the first. The result is accurate to about a factor of two. After `most_seconds` the cost of other
/// steps is taken to be proportional to their tokens and configurations. Measures (k-center and similarities of a head)
/// are left out. Throws Interrupted once `stop` is set.
Estimate estimate(const SweepPlan& plan, const Shard& shard, double most_seconds = 30,
                  const std::atomic<bool>* stop = nullptr);

/// "estimate: 3.3 h on 2 threads (6.6 h of processor time), ..."
std::string describe(const Estimate& estimate);

}  // namespace kvbench::sweep
