// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <kvbench/replay/measure/measurements.hpp>

namespace kvbench::replay {

/// Softmax weights of single-step queries over their entries, by table: [G, width]. `logits`: those of attend();
/// `state`: after it.
std::vector<Buffer<const float>> observed_weights(const methods::EntryTables& tables,
                                                  const std::vector<Buffer<float>>& logits, const HostState& state,
                                                  Backend& backend);

}  // namespace kvbench::replay
