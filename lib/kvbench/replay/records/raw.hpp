// SPDX-License-Identifier: Apache-2.0
// The raw results of a replay as HDF5 (schema kvbench_raw 1.0, docs/results.md), from which new metrics and paired
// comparisons are computed without a replay.
#pragma once

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/replay/plan/request.hpp>
#include <kvbench/replay/records/results.hpp>
#include <kvbench/trace/reader.hpp>

namespace kvbench::replay {

/// Writes and publishes `file`, with outputs and entries where the replay ran with RunOptions::keep_raw. Throws
/// IoError.
void write_raw(AtomicFile& file, const trace::Reader& reader, const ReplayRequest& request,
               const ReplayResults& results);

}  // namespace kvbench::replay
