// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include <agreement/outcome.hpp>

#include "orders.hpp"

namespace kvbench::testing {

std::vector<Pair> pairs_under_test() {
  std::vector<Pair> pairs;
  std::vector orders{emulated::Order::forward};
  // make nightly; equivalence_emulated compares all orders, operation by operation
  if (std::getenv("KVBENCH_ORDERS") != nullptr) orders.push_back(emulated::Order::shuffled);
  for (auto& backend : test::emulated_backends(orders)) pairs.push_back({make_cpu_backend(), std::move(backend)});
  return pairs;
}

Index many_tokens() { return 131; }
std::vector<Index> prefill_budgets() { return {30}; }

}  // namespace kvbench::testing
