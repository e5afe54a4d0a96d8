// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/kernels/backend.hpp>

namespace kvbench::replay {

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
