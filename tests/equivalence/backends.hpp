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
/// A size that only makes a test thorough: the smaller one where steps are slow.
inline Index sized(Index usual, Index smaller) { return steps_are_slow() ? smaller : usual; }

}  // namespace kvbench::test
