// SPDX-License-Identifier: Apache-2.0
// Faults of Chelsea.
#pragma once

#include <vector>

#include <kvbench/faithful/mutants/mutant.hpp>

namespace kvbench::faithful {

std::vector<Mutant> chelsea_mutants();

}  // namespace kvbench::faithful
