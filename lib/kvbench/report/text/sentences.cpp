// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/text/sentences.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/core/budget.hpp>
#include <kvbench/core/suggest.hpp>

namespace kvbench::report {

std::string at_budget(const std::string& text) {
  const Budget budget = Budget::parse(text);
  const std::string percent = fmt::format("{:.4g} %", 100 * budget.share());
  if (budget.cost() == CostKind::memory) return fmt::format("At {} of the memory", percent);
  if (budget.cost() == CostKind::fast) return fmt::format("At {} of the fast memory", percent);
  if (budget.cost() == CostKind::read) return fmt::format("Reading {} of the bytes", percent);
  if (budget.is_share()) return fmt::format("At {} of the tokens", percent);
  return fmt::format("At a budget of {}", budget.is_bytes() ? text : text + " tokens");
}

std::string listed_up_to(std::vector<std::string> names, std::size_t most) {
  if (names.size() <= most) return listed(names);
  const std::size_t more = names.size() - most;
  names.resize(most);
  return fmt::format("{} and {} more", fmt::join(names, ", "), more);
}

}  // namespace kvbench::report
