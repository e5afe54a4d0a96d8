// SPDX-License-Identifier: Apache-2.0
// The raw results of a replay as HDF5 (schema kvbench_raw 1.0, docs/results.md): a new metric or a paired comparison needs no
// replay.
#pragma once

#include <string>

#include <kvbench/replay/records/results.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench {

/// Writes `path` all or nothing. The replay must have run with RunOptions::keep_raw. Throws IoError.
void write_raw(const std::string& path, const trace::Reader& reader, const ReplayRequest& request,
               const ReplayResults& results);

}  // namespace kvbench
