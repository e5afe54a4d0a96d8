// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/text/budget_words.hpp>

#include <algorithm>
#include <cmath>

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

/// 0 for a quarter, more the further the budget is from it; absolute budgets after shares.
double distance_from_quarter(const Budget& budget) {
  return budget.is_share() ? std::abs(std::log(budget.share() / 0.25)) : 1e9;
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

std::vector<std::string> main_budgets(const std::vector<std::string>& budgets) {
  std::vector<std::string> out;
  for (const std::string& text : budgets) {
    const Budget budget = Budget::parse(text);
    const auto same = [&](const std::string& other) { return Budget::parse(other).cost() == budget.cost(); };
    const auto known = std::ranges::find_if(out, same);
    if (known == out.end()) {
      out.push_back(text);
    } else if (distance_from_quarter(budget) < distance_from_quarter(Budget::parse(*known))) {
      *known = text;
    }
  }
  return out;
}

}  // namespace kvbench::report
