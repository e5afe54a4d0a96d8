// SPDX-License-Identifier: Apache-2.0
// What a sweep will cost, before it is run.
#pragma once

#include <kvbench/sweep/shard.hpp>

namespace kvbench::sweep {

struct Estimate {
  double core_seconds = 0;           ///< processor time of the replays
  double seconds = 0;                ///< on the clock, on this machine's threads
  double memory_bytes = 0;           ///< that heads in flight take together, at most
  double cells_bytes = 0;            ///< of the file of cells
  int threads = 0;                   ///< that compute; 0: nothing is timed
  std::size_t on_gpu = 0;            ///< cells that a GPU computes, which are not timed here
  std::vector<std::string> untimed;  ///< methods that a short head cannot run, or that failed on it
};

/// Times every method of the shard's steps on two short synthetic heads of the trace's shape (at most 1024 and 2048 tokens, 64
/// queries), at the same shares of the context, and carries the time on to the real length by the growth between the two: good
/// to about a factor of two. Takes seconds. Measures (k-center and similarities of a head) are not counted.
Estimate estimate(const SweepPlan& plan, const Shard& shard);

/// "about 3 h 20 min on 2 threads (6 h 35 min of processor time), ..."
std::string describe(const Estimate& estimate);

}  // namespace kvbench::sweep
