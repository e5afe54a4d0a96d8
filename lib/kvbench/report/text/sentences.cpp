// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/text/sentences.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/core/suggest.hpp>
#include <kvbench/report/text/budget_words.hpp>

namespace kvbench::report {

std::string at_budget(const Budget& budget) {
  if (budget.cost() == CostKind::read) return fmt::format("Reading {:.4g} % of the bytes", 100 * budget.share());
  return (budget.is_share() ? "At " : "At a budget of ") + budget_words(budget);
}

std::string wins_text(std::string_view figure, std::span<const std::pair<std::string, std::int64_t>> wins,
                      std::int64_t texts) {
  std::string out;
  for (const auto& [name, count] : wins) {
    if (count == 0) continue;
    out += out.empty() ? fmt::format("{} has the lowest {} on {} of {} texts", name, figure, count, texts)
                       : fmt::format(", {} on {}", name, count);
  }
  return out;
}

std::string listed_up_to(std::vector<std::string> names, std::size_t most) {
  if (names.size() <= most) return listed(names);
  const std::size_t more = names.size() - most;
  names.resize(most);
  return fmt::format("{} and {} more", fmt::join(names, ", "), more);
}

}  // namespace kvbench::report
