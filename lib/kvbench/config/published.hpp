// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <kvbench/config/sweep.hpp>

namespace kvbench::config {

/// Reads a block [[published]]. Its relations must name configurations of `runs`. Throws Error with the place of the
/// fault.
Published read_published(const Value& table, const std::vector<SweepRun>& runs);

}  // namespace kvbench::config
