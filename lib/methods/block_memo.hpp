// SPDX-License-Identifier: Apache-2.0
// What the budgets of a method share while they answer the same queries: scores of pages, rankings of tokens.
#pragma once

#include <any>
#include <map>
#include <typeindex>

#include <kvbench/kernels/backend.hpp>

namespace kvbench {

/// The harness hands the same memo to every budget of one Prepared and one seed that answers a block of queries of a kv head
/// after the same tokens, the largest budget first. Values must not depend on the budget.
class BlockMemo {
 public:
  /// The value of type T that an earlier budget left, else what make() returns. A budget that finds it is charged with the work
  /// that it would have declared alone (saved_flops). References hold until the memo dies.
  template <class T, class F>
  T& get(Backend& backend, F make) {
    auto found = values_.find(typeid(T));
    if (found != values_.end()) {
      save(found->second.flops);
    } else {
      const double flops = backend.cost().flops;
      std::any value = T(make());
      found = values_.emplace(typeid(T), Value{std::move(value), backend.cost().flops - flops}).first;
    }
    return std::any_cast<T&>(found->second.value);
  }

  /// Adds to the work that the memo spared the budget at hand.
  void save(double flops) { saved_flops_ += flops; }
  /// Since the last call.
  double take_saved_flops() { return std::exchange(saved_flops_, 0); }

 private:
  struct Value {
    std::any value;
    double flops;
  };
  std::map<std::type_index, Value> values_;
  double saved_flops_ = 0;
};

}  // namespace kvbench
