// SPDX-License-Identifier: Apache-2.0
// The choice of a configuration per layer that does the least damage within a budget of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace kvbench::allocate {

/// Damage and cost of each configuration (entry of a menu) in each layer: [layers][entries], row-major.
struct Choices {
  std::size_t layers = 0, entries = 0;
  std::vector<double> damage;      ///< in any unit; not negative
  std::vector<std::int64_t> cost;  ///< in units of bytes; negative: the layer cannot have the entry

  std::size_t at(std::size_t layer, std::size_t entry) const { return layer * entries + entry; }
  bool has(std::size_t layer, std::size_t entry) const { return cost[at(layer, entry)] >= 0; }
};

/// Whether all layers can have the entry.
bool has_everywhere(const Choices& choices, std::size_t entry);

/// An entry per layer.
using Plan = std::vector<std::size_t>;

std::int64_t cost_of(const Choices& choices, const Plan& plan);
double damage_of(const Choices& choices, const Plan& plan);

/// A plan of small damage that costs at most `budget`; absent where every plan costs more. A Lagrange multiplier on the
/// cost, found by bisection, gives a plan with the least damage of all that cost as much as it or less (Everett 1963),
/// but may leave a part of the budget. This is spent by the exchange in one layer that fits and lowers the damage most,
/// again and again, which need not lead to the least damage for the whole budget.
std::optional<Plan> solve(const Choices& choices, std::int64_t budget);

/// The entry with the least damage that all layers can have within the budget; absent where none fits.
std::optional<std::size_t> best_equal(const Choices& choices, std::int64_t budget);

/// The choices with damages between those of each layer (share 0) and their mean over the layers (share 1), as weighted
/// geometric means: a share of 1/2 takes the square root of what tells layers apart.
Choices shrunk(Choices choices, double share);

}  // namespace kvbench::allocate
