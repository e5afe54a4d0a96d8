// SPDX-License-Identifier: Apache-2.0
// Every row of the registry, ready to run in a test.
#pragma once

#include <vector>

#include <kvbench/methods/registry.hpp>
#include <kvbench/testing/trial.hpp>

namespace kvbench::testing {

/// All rows with their defaults, their variants, and with parameters that select other algorithms.
std::vector<Row> all_rows();

}  // namespace kvbench::testing
