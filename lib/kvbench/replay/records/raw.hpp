// SPDX-License-Identifier: Apache-2.0
// The raw results of a replay as HDF5 (schema kvbench_raw 1.0, docs/results.md), from which new metrics and paired comparisons
// are computed without a replay.
#pragma once

#include <string>

#include <kvbench/replay/records/results.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench {

/// Writes `path` atomically, with outputs and entries where the replay ran with RunOptions::keep_raw. Throws IoError.
void write_raw(const std::string& path, const trace::Reader& reader, const ReplayRequest& request,
               const ReplayResults& results);

}  // namespace kvbench
