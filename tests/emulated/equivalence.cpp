// SPDX-License-Identifier: Apache-2.0
#include <equivalence/backends.hpp>
#include "orders.hpp"

namespace kvbench::test {

std::vector<std::unique_ptr<Backend>> backends_under_test() {
  return emulated_backends({emulated::Order::forward, emulated::Order::reverse, emulated::Order::shuffled});
}
bool steps_are_slow() { return true; }

}  // namespace kvbench::test
