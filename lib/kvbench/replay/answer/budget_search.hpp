// SPDX-License-Identifier: Apache-2.0
// What a configuration may spend on a work item under a budget that limits a cost, and as a quantiser: the tokens of
// its cache, or a level.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvbench/replay/answer/cost_budget.hpp>
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

/// The search for the budget of one configuration on the heads of a work item.
class BudgetSearch {
 public:
  /// `prompts` and `heads`: those of the work item, whose costs stand for those of all layers.
  BudgetSearch(const WorkItemTask& task, const LayerChoice& choice, std::uint32_t seed,
               std::span<const methods::HeadPrompt> prompts, std::span<const Head> heads, Backend& backend,
               ConfigurationRun::Options options);

  /// The tokens of a budget that limits a cost, protected tokens included. Throws methods::Infeasible where none fit.
  Index tokens(const PreparedMethod& method) const;
  /// The level of a quantiser, from 1, that the budget allows: in a layer with a sliding window that of the others.
  /// Throws methods::Infeasible where none fits, and for budgets in tokens, which say nothing to a method that keeps
  /// every token.
  Index level() const;

  /// The cost of the caches of this budget that was found on any work item of the same shape. Absent where it was
  /// measured on this one.
  std::optional<double> shared_cost(Index budget) const;

 private:
  bool whole(std::int64_t layer) const { return keeps_whole(task_.request, layer); }
  std::string percentage() const;
  std::string percentage_in_bits() const;
  bool shares(CostKind cost) const;
  std::string key_of(CostKind cost, Index budget) const;
  double cost_of(CostKind cost, Index budget, const std::function<methods::Caches()>& make) const;
  const methods::MakeCaches& maker(const PreparedMethod& method) const;
  double cost_at(CostKind cost, Index tokens, const PreparedMethod& method) const;
  StoredBytes bytes_in_layer(std::int64_t layer, Index level) const;
  double cost_at_level(CostKind cost, Index level) const;
  std::vector<methods::HeadPrompt> prompts_in_layer(std::int64_t layer) const;
  void check_whole_cost(double limit) const;
  void check_stop() const;

  const WorkItemTask& task_;
  MethodChoice choice_;
  Budget budget_;
  std::uint32_t seed_;
  std::int64_t layer_;                ///< of the work item
  std::vector<std::int64_t> layers_;  ///< that share the budget
  double outside_;                    ///< outside_bytes()
  std::vector<Head> unlimited_;       ///< heads without the window of their layer, which a method rounds
  std::vector<methods::HeadPrompt> unlimited_views_;  ///< their prompts
  std::span<const methods::HeadPrompt> prompts_;
  std::span<const Head> heads_;
  Backend& backend_;
  LayerTokens own_;
  ConfigurationRun::Options options_;
  mutable methods::MakeCaches make_;  ///< for the search alone, where its costs are shared
};

}  // namespace kvbench::replay
