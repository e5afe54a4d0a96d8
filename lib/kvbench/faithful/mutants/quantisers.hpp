// SPDX-License-Identifier: Apache-2.0
// Faults of the quantisers, by what they break: a law, a bound, a rotation or a step.
#pragma once

#include <vector>

#include <kvbench/faithful/mutants/mutant.hpp>

namespace kvbench::faithful {

std::vector<Mutant> quantiser_mutants();

}  // namespace kvbench::faithful
