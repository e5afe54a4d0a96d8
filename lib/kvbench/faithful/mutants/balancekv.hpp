// SPDX-License-Identifier: Apache-2.0
// Faults of BalanceKV, its walk and its trees.
#pragma once

#include <vector>

#include <kvbench/faithful/mutants/mutant.hpp>

namespace kvbench::faithful {

std::vector<Mutant> balancekv_mutants();

}  // namespace kvbench::faithful
