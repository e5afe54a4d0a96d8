// SPDX-License-Identifier: Apache-2.0
// How much memory the heads in flight take, and so how many may be: a trace may be far larger than the machine.
#pragma once

#include <limits>
#include <string>

#include <kvbench/replay/plan/plan.hpp>

namespace kvbench {

/// An estimate, from above for the methods of the registry, of the bytes that one unit holds at its peak on a host: each head's
/// keys and values in fp32, what came with them, the scores of a block of queries, and a method's own copies.
double unit_bytes(const trace::TraceInfo& trace, const Unit& unit);

/// Bytes that this process may use: three quarters of the machine's memory, or of what its control group (cgroup v2) grants.
double default_memory();

struct Workers {
  int threads = 1;
  std::string note;  ///< why there are fewer than asked for; empty: there are not
  /// Bytes of the host's memory that their units leave for others to be read ahead.
  double spare = std::numeric_limits<double>::infinity();
};

/// worker_count() threads, or as many of them as have units that fit into options.memory (0: default_memory()) together.
/// Throws Error, naming the need and the remedy, where not even one does.
Workers plan_workers(const trace::TraceInfo& trace, const ReplayPlan& plan, const RunOptions& options);

}  // namespace kvbench
