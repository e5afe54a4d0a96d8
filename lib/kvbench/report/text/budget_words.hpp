// SPDX-License-Identifier: Apache-2.0
// Budgets in words.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/core/budget.hpp>

namespace kvbench::report {

/// "25 % of the memory", "25 % of the fast memory", "25 % of the bytes read", "25 % of the tokens", "256 tokens",
/// "64KiB".
std::string budget_words(const Budget& budget);

/// The same for several: "12.5 %, 25 % of the memory, 256 tokens".
std::string budget_words(std::span<const Budget> budgets);

/// 0 for a quarter, more the further the budget is from it; absolute budgets after shares.
double distance_from_quarter(const Budget& budget);

/// The budget of each kind (tokens, memory, fast memory, bytes read) that is nearest to a quarter.
std::vector<Budget> main_budgets(const std::vector<Budget>& budgets);

}  // namespace kvbench::report
