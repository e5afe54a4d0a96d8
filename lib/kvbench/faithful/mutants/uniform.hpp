// SPDX-License-Identifier: Apache-2.0
// Faults of the uniform baselines.
#pragma once

#include <vector>

#include <kvbench/faithful/mutants/mutant.hpp>

namespace kvbench::faithful {

std::vector<Mutant> baseline_mutants();

}  // namespace kvbench::faithful
