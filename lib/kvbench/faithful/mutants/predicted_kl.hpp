// SPDX-License-Identifier: Apache-2.0
// Faults of predicted KL, and of the probes that it is computed from.
#pragma once

#include <vector>

#include <kvbench/faithful/mutants/mutant.hpp>

namespace kvbench::faithful {

std::vector<Mutant> predicted_kl_mutants();

}  // namespace kvbench::faithful
