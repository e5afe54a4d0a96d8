// SPDX-License-Identifier: Apache-2.0
#include "backends.hpp"

namespace kvbench::test {

std::vector<std::unique_ptr<Backend>> backends_under_test() {
  std::vector<std::unique_ptr<Backend>> backends;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512})
    if (isa_available(isa)) backends.push_back(make_cpu_backend(isa));
  return backends;
}

bool steps_are_slow() { return false; }

}  // namespace kvbench::test
