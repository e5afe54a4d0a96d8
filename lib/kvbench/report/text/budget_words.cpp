// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/text/budget_words.hpp>

#include <fmt/format.h>

#include <kvbench/core/budget.hpp>

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

std::string number_of(const Budget& budget, const std::string& text) {
  return budget.is_share() ? fmt::format("{:.4g}", 100 * budget.share()) : text;
}

}  // namespace

std::string budget_words(const std::string& budget) { return budget_words({&budget, 1}); }

std::string budget_words(std::span<const std::string> budgets) {
  std::string out;
  for (std::size_t i = 0; i < budgets.size(); ++i) {
    const Budget budget = Budget::parse(budgets[i]);
    const std::string unit = unit_of(budget);
    out += (i > 0 ? ", " : "") + number_of(budget, budgets[i]);
    const bool again = i + 1 < budgets.size() && unit_of(Budget::parse(budgets[i + 1])) == unit;
    out += !again ? unit : budget.is_share() ? " %" : "";
  }
  return out;
}

}  // namespace kvbench::report
