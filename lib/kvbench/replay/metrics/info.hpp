// SPDX-License-Identifier: Apache-2.0
// What the tables of metrics say of each one, whether of attention (table.hpp) or of the model's output
// (eval/damage.hpp).
#pragma once

#include <cmath>
#include <string_view>

namespace kvbench::replay {

/// Which of two values is the better one.
enum class Better { smaller, larger, nearer_to_zero };

constexpr std::string_view name_of(Better better) {
  constexpr std::string_view names[] = {"smaller", "larger", "nearer to 0"};
  return names[static_cast<std::size_t>(better)];
}

/// The smallest and the largest value that a metric can have.
struct Limits {
  double lo = 0, hi = 0;
};
namespace limits {
inline constexpr Limits at_least_zero{0, INFINITY}, share{0, 1}, any_sign{-INFINITY, INFINITY};
}

struct MetricInfo {
  std::string_view name;     ///< in columns, raw results and --metric
  std::string_view meaning;  ///< the sentence of documentation and reports
  Better better = Better::smaller;
  Limits limits;
  std::string_view applies;  ///< to what; elsewhere its value is NaN

  /// Whether the ratio of two means says something: not of values that may be negative, unless their sizes are
  /// compared.
  constexpr bool has_ratio() const { return limits.lo >= 0 || better == Better::nearer_to_zero; }
};

}  // namespace kvbench::replay
