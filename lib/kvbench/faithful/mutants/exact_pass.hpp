// SPDX-License-Identifier: Apache-2.0
// Faults of the exact pass, with which every answer is compared.
#pragma once

#include <vector>

#include <kvbench/faithful/mutants/mutant.hpp>

namespace kvbench::faithful {

std::vector<Mutant> exact_mutants();

}  // namespace kvbench::faithful
