// SPDX-License-Identifier: Apache-2.0
#include "orders.hpp"
#include "../equivalence/backends.hpp"

namespace kvbench::test {

std::vector<std::unique_ptr<Backend>> backends_under_test() { return emulated_backends(); }

}  // namespace kvbench::test
