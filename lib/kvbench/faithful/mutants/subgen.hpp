// SPDX-License-Identifier: Apache-2.0
// Faults of SubGen.
#pragma once

#include <vector>

#include <kvbench/faithful/mutants/mutant.hpp>

namespace kvbench::faithful {

std::vector<Mutant> subgen_mutants();

}  // namespace kvbench::faithful
