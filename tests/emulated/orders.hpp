// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <kvbench/kernels/backend.hpp>

#include "device.hpp"

namespace kvbench::test {

/// The CUDA backend on emulated devices: the orders of threads. The program's main() (orders.cpp) fails where one test case
/// reads different bits on two of them, where a kernel was at fault, or where memory was written that is not held.
std::vector<std::unique_ptr<Backend>> emulated_backends(const std::vector<emulated::Order>& orders);

}  // namespace kvbench::test
