// SPDX-License-Identifier: Apache-2.0
// The scores of single tokens as HDF5 (schema kvbench_eval 1.0, docs/eval.md), from which other statistics are computed
// without the model.
#pragma once

#include <kvbench/core/atomic_file.hpp>
#include <kvbench/eval/results.hpp>

namespace kvbench::eval {

/// Writes and publishes `file`. Throws IoError.
void write_eval_raw(AtomicFile& file, const EvalResults& results);

}  // namespace kvbench::eval
