// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <kvbench/config/sweep.hpp>

namespace kvbench::config {

/// Reads a block [[published]]: one claim, or with a list of metrics one for each, whose text and id name it. Its
/// relations must name configurations of `runs`. Throws Error with the place of the fault.
std::vector<Published> read_published(const Value& table, const std::vector<SweepRun>& runs);

}  // namespace kvbench::config
