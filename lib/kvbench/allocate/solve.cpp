// SPDX-License-Identifier: Apache-2.0
#include <kvbench/allocate/solve.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvbench::allocate {
namespace {

/// The entry of each layer with the least damage + price * cost; of equal ones the cheapest. Absent where a layer can
/// have none.
std::optional<Plan> at_price(const Choices& choices, double price) {
  Plan plan;
  for (std::size_t l = 0; l < choices.layers; ++l) {
    std::optional<std::size_t> best;
    double least = 0;
    for (std::size_t e = 0; e < choices.entries; ++e) {
      if (!choices.has(l, e)) continue;
      const std::int64_t cost = choices.cost[choices.at(l, e)];
      const double value = choices.damage[choices.at(l, e)] + price * static_cast<double>(cost);
      if (best && (value > least || (value == least && cost >= choices.cost[choices.at(l, *best)]))) continue;
      best = e, least = value;
    }
    if (!best) return std::nullopt;
    plan.push_back(*best);
  }
  return plan;
}

Plan cheapest(const Choices& choices) {
  Choices free = choices;
  std::ranges::fill(free.damage, 0.0);
  return at_price(free, 1).value_or(Plan());
}

/// Makes the exchange in one layer that costs at most `left` more and lowers the damage most. Returns what it costs;
/// absent where none lowers it.
std::optional<std::int64_t> improve(const Choices& choices, Plan& plan, std::int64_t left) {
  std::size_t layer = 0, entry = 0;
  std::int64_t paid = 0;
  double most = 0;
  for (std::size_t l = 0; l < choices.layers; ++l) {
    const std::size_t now = choices.at(l, plan[l]);
    for (std::size_t e = 0; e < choices.entries; ++e) {
      const std::size_t other = choices.at(l, e);
      const std::int64_t more = choices.cost[other] - choices.cost[now];
      const double gain = choices.damage[now] - choices.damage[other];
      if (!choices.has(l, e) || more > left || !(gain > most)) continue;
      layer = l, entry = e, paid = more, most = gain;
    }
  }
  if (!(most > 0)) return std::nullopt;
  plan[layer] = entry;
  return paid;
}

}  // namespace

bool has_everywhere(const Choices& choices, std::size_t entry) {
  for (std::size_t l = 0; l < choices.layers; ++l) {
    if (!choices.has(l, entry)) return false;
  }
  return true;
}

std::int64_t cost_of(const Choices& choices, const Plan& plan) {
  std::int64_t cost = 0;
  for (std::size_t l = 0; l < plan.size(); ++l) cost += choices.cost[choices.at(l, plan[l])];
  return cost;
}

double damage_of(const Choices& choices, const Plan& plan) {
  double damage = 0;
  for (std::size_t l = 0; l < plan.size(); ++l) damage += choices.damage[choices.at(l, plan[l])];
  return damage;
}

std::optional<Plan> solve(const Choices& choices, std::int64_t budget) {
  constexpr int halvings = 200;  // the price is known to the last bit before, unless it is near 0
  std::optional<Plan> best = cheapest(choices);
  if (best->size() != choices.layers || cost_of(choices, *best) > budget) return std::nullopt;
  double low = 0, high = 0;
  for (const double damage : choices.damage) high = std::max(high, 2 * damage);  // at which one unit costs more
  if (const auto free = at_price(choices, 0); cost_of(choices, *free) <= budget) return free;
  for (int i = 0; i < halvings; ++i) {
    const double price = (low + high) / 2;
    if (price == low || price == high) break;
    const Plan plan = *at_price(choices, price);
    const bool within = cost_of(choices, plan) <= budget;
    (within ? high : low) = price;
    if (within) best = plan;
  }
  std::int64_t left = budget - cost_of(choices, *best);
  while (const auto paid = improve(choices, *best, left)) left -= *paid;
  return best;
}

std::optional<std::size_t> best_equal(const Choices& choices, std::int64_t budget) {
  std::optional<std::size_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t e = 0; e < choices.entries; ++e) {
    const Plan plan(choices.layers, e);
    if (!has_everywhere(choices, e) || cost_of(choices, plan) > budget || damage_of(choices, plan) >= least) continue;
    best = e, least = damage_of(choices, plan);
  }
  return best;
}

Choices shrunk(Choices choices, double share) {
  if (share == 0) return choices;
  for (std::size_t e = 0; e < choices.entries; ++e) {
    double sum = 0, count = 0;
    for (std::size_t l = 0; l < choices.layers; ++l) {
      if (choices.has(l, e)) sum += choices.damage[choices.at(l, e)], count += 1;
    }
    for (std::size_t l = 0; l < choices.layers; ++l) {
      double& damage = choices.damage[choices.at(l, e)];
      damage = std::pow(damage, 1 - share) * std::pow(sum / std::max(count, 1.0), share);
    }
  }
  return choices;
}

}  // namespace kvbench::allocate
