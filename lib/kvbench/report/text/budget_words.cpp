// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/text/budget_words.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace kvbench::report {
namespace {

/// What follows the number of a budget.
std::string unit_of(const Budget& budget) {
  if (budget.is_bytes()) return "";
  if (!budget.is_share()) return " tokens";
  if (budget.cost() == CostKind::memory) return " % of the memory";
  if (budget.cost() == CostKind::fast) return " % of the fast memory";
  return budget.cost() == CostKind::read ? " % of the bytes read" : " % of the tokens";
}

std::string number_of(const Budget& budget) {
  return budget.is_share() ? fmt::format("{:.4g}", 100 * budget.share()) : budget.text();
}

}  // namespace

double distance_from_quarter(const Budget& budget) {
  return budget.is_share() ? std::abs(std::log(budget.share() / 0.25)) : 1e9;
}

std::string budget_words(const Budget& budget) { return budget_words({&budget, 1}); }

std::string budget_words(std::span<const Budget> budgets) {
  std::string out;
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    const Budget& budget = budgets[i];
    const std::string unit = unit_of(budget);
    out += (i > 0 ? ", " : "") + number_of(budget);
    const bool again = i + 1 < budgets.size() && unit_of(budgets[i + 1]) == unit;
    out += !again ? unit : budget.is_share() ? " %" : "";
  }
  return out;
}

std::vector<Budget> main_budgets(const std::vector<Budget>& budgets) {
  std::vector<Budget> out;
  for (const Budget& budget : budgets) {
    const auto known = std::ranges::find(out, budget.cost(), &Budget::cost);
    if (known == out.end()) {
      out.push_back(budget);
    } else if (distance_from_quarter(budget) < distance_from_quarter(*known)) {
      *known = budget;
    }
  }
  return out;
}

}  // namespace kvbench::report
