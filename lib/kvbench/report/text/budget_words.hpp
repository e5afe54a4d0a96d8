// SPDX-License-Identifier: Apache-2.0
// Budgets in words.
#pragma once

#include <span>
#include <string>

namespace kvbench::report {

/// "25 % of the memory", "25 % of the fast memory", "25 % of the bytes read", "25 % of the tokens", "256 tokens",
/// "64KiB". Throws Error where the text is no budget.
std::string budget_words(const std::string& budget);

/// The same for several: "12.5 %, 25 % of the memory, 256 tokens".
std::string budget_words(std::span<const std::string> budgets);

}  // namespace kvbench::report
