// SPDX-License-Identifier: Apache-2.0
// The back ends that one equivalence binary compares with the reference.
#pragma once

#include <memory>
#include <vector>

#include <kvbench/kernels/backend.hpp>

namespace kvbench::test {

std::vector<std::unique_ptr<Backend>> backends_under_test();

/// Whether they run on an emulated device, where each step is slow.
bool steps_are_slow();
/// For sizes that only make a test more thorough: the smaller one on an emulated device.
inline Index sized(Index usual, Index smaller) { return steps_are_slow() ? smaller : usual; }

}  // namespace kvbench::test
