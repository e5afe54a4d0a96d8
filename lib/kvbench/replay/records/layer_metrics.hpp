// SPDX-License-Identifier: Apache-2.0
// Metrics of the heads of a layer together.
#pragma once

#include <span>

#include <kvbench/replay/records/results.hpp>

namespace kvbench::replay {

/// Sets residual_err of each query of a layer from the parts of its kv heads (ConfigurationResult::residual), in the
/// metrics of its first query head, and frees the parts. The other heads keep NaN, so that a query counts once. Where a
/// replay has some of the heads of a layer, it is the error of compressing these alone; without a result of one of
/// them, NaN. The heads of a layer must be adjacent.
void set_layer_metrics(std::span<HeadResult> heads);

}  // namespace kvbench::replay
