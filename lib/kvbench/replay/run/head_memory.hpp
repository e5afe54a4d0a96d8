// SPDX-License-Identifier: Apache-2.0
// The memory of concurrent work items, and the number of them that fit: a trace may be far larger than memory.
#pragma once

#include <limits>
#include <string>

#include <kvbench/kernels/backend.hpp>
#include <kvbench/replay/plan/plan.hpp>

namespace kvbench::replay {

/// An upper estimate, for the methods of the registry, of the bytes that one work item occupies at its peak on a host:
/// for each head keys and values in fp32 and the optional arrays of the trace, the scores of a block of queries, and a
/// method's copies.
double work_item_bytes(const trace::TraceInfo& trace, const WorkItem& item);

/// Bytes that this process may use: three quarters of the machine's memory, or of the limit of its control group
/// (cgroup v2).
double default_memory();

struct ThreadPlan {
  int threads = 1;
  std::string note;  ///< why there are fewer than thread_count(); otherwise empty
  /// Bytes of host memory that remain for reading ahead while all threads compute.
  double spare = std::numeric_limits<double>::infinity();
};

/// thread_count() threads, or as many as have work items that fit together into options.memory (0: default_memory()),
/// besides one chunk of a compressed trace. Throws Error with the memory needed and the remedy where not even one work
/// item fits.
ThreadPlan plan_threads(const trace::TraceInfo& trace, const ReplayPlan& plan, const RunOptions& options);

/// The work item that was being computed when device memory was exhausted.
struct WorkItemSize {
  Index tokens = 0;
  std::size_t heads = 1;    ///< kv heads computed together: more than one for methods that see the whole layer
  std::size_t threads = 1;  ///< work items that are computed on the device at the same time
};

/// The same exception with a message that adds how many tokens would fit, and the remedy: fewer threads, methods or
/// tokens.
OutOfDeviceMemory explained(const OutOfDeviceMemory& fault, const WorkItemSize& item);

}  // namespace kvbench::replay
