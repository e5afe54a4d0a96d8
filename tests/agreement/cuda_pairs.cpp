// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "outcome.hpp"

namespace kvbench::testing {

std::vector<Pair> pairs_under_test() {
  std::vector<Pair> pairs;
  pairs.push_back({make_cpu_backend(), make_cuda_backend()});
  return pairs;
}

Index many_tokens() { return 331; }
std::vector<Index> prefill_budgets() { return {12, 30}; }

}  // namespace kvbench::testing

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  if (!kvbench::cuda_available()) return skipped;
  return doctest::Context(argc, argv).run();
}
