// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/check/row.hpp>

namespace kvbench::bounds {

std::string_view name_of(CheckKind kind) {
  constexpr std::string_view names[] = {"law", "exact", "theorem", "data", "claim", "cost"};
  return names[static_cast<std::size_t>(kind)];
}

}  // namespace kvbench::bounds
