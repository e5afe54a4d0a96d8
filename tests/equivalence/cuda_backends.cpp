// SPDX-License-Identifier: Apache-2.0
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include "backends.hpp"

namespace kvbench::test {

std::vector<std::unique_ptr<Backend>> backends_under_test() {
  std::vector<std::unique_ptr<Backend>> backends;
  backends.push_back(make_cuda_backend());
  return backends;
}

bool steps_are_slow() { return false; }

}  // namespace kvbench::test

int main(int argc, char** argv) {
  constexpr int skipped = 77;
  if (!kvbench::cuda_available()) return skipped;
  return doctest::Context(argc, argv).run();
}
