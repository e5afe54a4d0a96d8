// SPDX-License-Identifier: Apache-2.0
// What the budgets of a method share while they answer the same queries: scores of pages, rankings of tokens, tables.
#pragma once

#include <any>
#include <map>
#include <span>
#include <typeindex>
#include <utility>
#include <vector>

#include <kvbench/kernels/backend.hpp>

namespace kvbench {

/// The harness hands the same memo to every budget of one Prepared and one seed that answers a block of queries of a kv head
/// after the same tokens, the largest budget first. Values must not depend on the budget.
class BlockMemo {
 public:
  /// `budgets`: those that answer the block one after the other, where their entries are answered together; falling.
  explicit BlockMemo(std::vector<Index> budgets = {}) : budgets_(std::move(budgets)) {}

  /// Empty where each budget's entries are answered for themselves: then nothing is gained from tables in common.
  std::span<const Index> budgets() const { return budgets_; }

  /// The value of type T that an earlier budget left, else what make() returns. A budget that finds it is charged with the work
  /// that it would have declared alone (saved_flops). References hold until the memo dies.
  template <class T, class F>
  T& get(Backend& backend, F make) {
    auto found = values_.find(typeid(T));
    if (found != values_.end()) {
      save(found->second.flops);
    } else {
      const double before = backend.cost().flops + saved_flops_;
      std::any value = T(make());
      found = values_.emplace(typeid(T), Value{std::move(value), backend.cost().flops + saved_flops_ - before}).first;
    }
    return std::any_cast<T&>(found->second.value);
  }

  /// Does work that later budgets will be charged with as they ask for it: nobody is charged now.
  template <class F>
  void ahead(Backend& backend, F work) {
    const double before = backend.cost().flops + saved_flops_;
    work();
    save(before - backend.cost().flops - saved_flops_);
  }

  /// Adds to the work that the memo spared the budget at hand; below 0 where it did some for others.
  void save(double flops) { saved_flops_ += flops; }
  /// Since the last call.
  double take_saved_flops() { return std::exchange(saved_flops_, 0); }

 private:
  struct Value {
    std::any value;
    double flops;
  };
  std::vector<Index> budgets_;
  std::map<std::type_index, Value> values_;
  double saved_flops_ = 0;
};

}  // namespace kvbench
