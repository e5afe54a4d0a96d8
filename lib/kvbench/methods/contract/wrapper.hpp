// SPDX-License-Identifier: Apache-2.0
// Wrappers W(A): W selects tokens by the scores of a method A that states them (MethodInfo::scores), in another way
// than A does: heads of a layer compete, or a part of the budget goes by other scores.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include <kvbench/methods/contract/info.hpp>

namespace kvbench::methods {

struct Wrapper {
  /// Its facts and parameters, without prepare(). Granularity::layer: heads compete, and select() is given all kv heads
  /// of a layer.
  MethodInfo info;
  /// As MethodInfo::prepare, with the scores of the heads and the wrapper's own parameters. Every head selects for all
  /// of its query heads: the scores are [1, c].
  std::function<MakeCaches(std::span<const HeadPrompt>, std::vector<TokenScores>, const Params&, Backend&)> select;
};

}  // namespace kvbench::methods
