// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/kernels/backend.hpp>

namespace kvbench {

/// What was being computed when device memory ran out.
struct UnitSize {
  Index tokens = 0;
  std::size_t heads = 1;    ///< kv heads computed together: more than one for methods that see the whole layer
  std::size_t workers = 1;  ///< units in flight on the device
};

/// The same fault with a sentence on what would fit and what to change: fewer workers, fewer methods, fewer tokens.
OutOfDeviceMemory explained(const OutOfDeviceMemory& fault, const UnitSize& unit);

}  // namespace kvbench
