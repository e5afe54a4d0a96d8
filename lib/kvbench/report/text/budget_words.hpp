// SPDX-License-Identifier: Apache-2.0
// Budgets in words.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace kvbench::report {

/// "25 % of the memory", "25 % of the fast memory", "25 % of the bytes read", "25 % of the tokens", "256 tokens",
/// "64KiB". Throws Error where the text is no budget.
std::string budget_words(const std::string& budget);

/// The same for several: "12.5 %, 25 % of the memory, 256 tokens".
std::string budget_words(std::span<const std::string> budgets);

/// The budget of each kind (tokens, memory, fast memory, bytes read) that is nearest to a quarter.
std::vector<std::string> main_budgets(const std::vector<std::string>& budgets);

}  // namespace kvbench::report
