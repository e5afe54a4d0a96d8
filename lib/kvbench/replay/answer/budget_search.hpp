// SPDX-License-Identifier: Apache-2.0
// What a configuration may spend on a work item: the tokens of its cache, or the level of a quantiser.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvbench/replay/answer/cost_budget.hpp>
#include <kvbench/replay/answer/work_item.hpp>
#include <kvbench/replay/plan/layer_choice.hpp>

namespace kvbench::replay {

/// The search for the budget of one configuration on the heads of a work item.
class BudgetSearch {
 public:
  /// `prompts` and `heads`: those of the work item, whose costs stand for those of all layers.
  BudgetSearch(const WorkItemTask& task, const LayerChoice& choice, std::uint32_t seed,
               std::span<const methods::HeadPrompt> prompts, std::span<const Head> heads, Backend& backend,
               ConfigurationRun::Options options);

  /// The budget of the caches that `method` makes: tokens that it may keep itself, or a level of a quantiser, from 1.
  /// Calls report(tokens) with the budget in tokens, protected tokens included. Throws methods::Infeasible where no
  /// budget fits.
  Index allowed(const PreparedMethod& method, const std::function<void(Index tokens)>& report) const;

  /// The cost of the caches of this budget that was found on any work item of the same shape. Absent where it was
  /// measured on this one.
  std::optional<double> shared_cost(Index budget) const;

 private:
  bool whole(std::int64_t layer) const { return keeps_whole(task_.request, layer); }
  const std::vector<Index>& plan_at(Index tokens) const;
  Index own_tokens(Index tokens, std::int64_t layer) const;
  Index allowed_tokens(const PreparedMethod& method) const;
  Index allowed_level() const;
  std::string percentage() const;
  /// The same, or the least share in which the quantiser can keep the cache where that is more.
  std::string percentage_in_bits() const;
  bool shares(CostKind cost) const;
  std::string key_of(CostKind cost, Index budget) const;
  double cost_of(CostKind cost, Index budget, const std::function<methods::Caches()>& make) const;
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
  std::span<const methods::HeadPrompt> prompts_;
  std::span<const Head> heads_;
  Backend& backend_;
  ConfigurationRun::Options options_;
  mutable std::optional<std::pair<Index, std::vector<Index>>>
      planned_;                       ///< the last plan, and the tokens that it divides
  mutable methods::MakeCaches make_;  ///< for the search alone, where its costs are shared
};

}  // namespace kvbench::replay
