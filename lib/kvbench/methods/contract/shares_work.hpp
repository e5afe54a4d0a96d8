// SPDX-License-Identifier: Apache-2.0
// What budgets and seeds of a method share is computed once and charged to each of them.
#pragma once

#include <optional>
#include <utility>

#include <kvbench/core/spent.hpp>

namespace kvbench {

/// What caches made from it share, the first that needs it computes. Alone each would have done so itself, and its row says
/// what that takes: the others are charged with what they were spared.
class SharesWork {
 public:
  /// Since the last call.
  Spent take_spared() const { return std::exchange(spared_, {}); }

 protected:
  template <class T>
  struct Once {
    std::optional<T> value;
    Spent spent;  ///< on it
  };

  ~SharesWork() = default;
  void spare(const Spent& spent) const { spared_ = spared_ + spent; }
  /// The value at hand, else what compute() returns.
  template <class T, class F>
  const T& once(Once<T>& shared, Backend& backend, F compute) const {
    if (shared.value) {
      spare(shared.spent);
    } else {
      shared.spent = measured(backend, [&] { shared.value.emplace(compute()); });
    }
    return *shared.value;
  }

 private:
  mutable Spent spared_;
};

}  // namespace kvbench
