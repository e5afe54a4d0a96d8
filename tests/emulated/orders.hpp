// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <kvbench/kernels/backend.hpp>

#include "device.hpp"

namespace kvbench::test {

/// The CUDA back end on the emulated devices of these orders. main() in orders.cpp fails where a test case reads
/// different bits from two of them, and where a kernel or a copy had a fault.
std::vector<std::unique_ptr<Backend>> emulated_backends(const std::vector<emulated::Order>& orders);

}  // namespace kvbench::test
