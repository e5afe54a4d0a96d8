// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/results.hpp>

namespace kvbench::eval {

std::string_view name_of(Inject inject) {
  constexpr std::string_view names[] = {"all", "one", "upto", "none"};
  return names[static_cast<std::size_t>(inject)];
}

}  // namespace kvbench::eval
