// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include <kvbench/replay/answer/work_item.hpp>

namespace kvbench::replay {

/// The tokens that a method may keep itself, of those of a budget.
class LayerTokens {
 public:
  LayerTokens(const WorkItemTask& task, const MethodChoice& choice, Backend& backend)
      : task_(task), choice_(choice), backend_(backend) {}

  /// On a layer of this number, at a budget of `tokens`. Throws methods::Infeasible where there are none.
  Index in_layer(Index tokens, std::int64_t layer) const;

 private:
  const std::vector<Index>& divided(Index tokens) const;

  const WorkItemTask& task_;
  MethodChoice choice_;
  Backend& backend_;
  mutable std::optional<std::pair<Index, std::vector<Index>>>
      planned_;  ///< the last division among the layers, and the tokens that it divides
};

}  // namespace kvbench::replay
