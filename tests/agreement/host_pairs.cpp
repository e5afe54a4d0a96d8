// SPDX-License-Identifier: Apache-2.0
#include "outcome.hpp"

namespace kvbench::testing {

std::vector<Pair> pairs_under_test() {
  std::vector<Pair> pairs;
  pairs.push_back({make_ref_backend(), make_cpu_backend()});
  if (best_isa() != Isa::scalar) pairs.push_back({make_cpu_backend(Isa::scalar), make_cpu_backend()});
  return pairs;
}

Index many_tokens() { return 331; }
std::vector<Index> prefill_budgets() { return {12, 30}; }

}  // namespace kvbench::testing
