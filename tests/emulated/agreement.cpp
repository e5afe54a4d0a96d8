// SPDX-License-Identifier: Apache-2.0
#include <agreement/outcome.hpp>

#include "orders.hpp"

namespace kvbench::testing {

std::vector<Pair> pairs_under_test() {
  std::vector<Pair> pairs;
  for (auto& backend : test::emulated_backends({emulated::Order::forward, emulated::Order::shuffled}))
    pairs.push_back({make_cpu_backend(), std::move(backend)});
  return pairs;
}

Index many_tokens() { return 131; }
std::vector<Index> prefill_budgets() { return {30}; }

}  // namespace kvbench::testing
