// SPDX-License-Identifier: Apache-2.0
#include <kvbench/evidence/check_row.hpp>

#include <kvbench/core/enumeration.hpp>

namespace kvbench::evidence {

std::string_view name_of(CheckKind kind) {
  constexpr std::string_view names[] = {"law", "exact", "theorem", "data", "claim", "cost"};
  return name_in(names, kind);
}

}  // namespace kvbench::evidence
