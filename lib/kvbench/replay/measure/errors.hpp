// SPDX-License-Identifier: Apache-2.0
// The errors of one answer against the exact one. Differences are formed and summed in fp64.
#pragma once

#include <kvbench/replay/metrics/answered.hpp>

namespace kvbench::replay {

/// `plain`: the state over H only, the entries with their own token's key and value and unit weights.
SquaredNorms squared_norms(const RowTruth& truth, const RowState& answer, const RowState& plain);

}  // namespace kvbench::replay
