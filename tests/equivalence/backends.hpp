// SPDX-License-Identifier: Apache-2.0
// The back ends that one equivalence binary compares with the reference.
#pragma once

#include <memory>
#include <vector>

#include <kvbench/kernels/backend.hpp>

namespace kvbench::test {

std::vector<std::unique_ptr<Backend>> backends_under_test();

}  // namespace kvbench::test
