// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include <kvbench/bounds/measures.hpp>

namespace kvbench {

/// Measures of traces as CSV: run, trace, sha256, model, prompt, layer, kv_head, measure, array, x, value, count, version,
/// commit. RFC 4180 quoting, LF, one header line.
std::string measures_csv(std::span<const MeasureRow> rows);

}  // namespace kvbench
