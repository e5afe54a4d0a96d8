// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/pair_limit.hpp>

#include <fmt/format.h>

namespace kvbench::methods {

void fields(ParamVisitor& visitor, PairLimit& limit) {
  visitor.real("max_pairs", limit.pairs, {.min = 1}, "pairs of rows that may be compared per head; above: infeasible");
}

void check_pairs(const PairLimit& limit, std::string_view method, double pairs, std::string_view remedy) {
  if (pairs <= limit.pairs) return;
  throw Infeasible(
      fmt::format("{} would compare {:.3g} pairs of rows, above its limit of {:.3g}; raise {}.max_pairs, or {}", method,
                  pairs, limit.pairs, method, remedy));
}

}  // namespace kvbench::methods
