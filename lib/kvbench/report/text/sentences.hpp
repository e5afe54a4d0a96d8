// SPDX-License-Identifier: Apache-2.0
// Sentences that state an answer: budgets in words, other parts, and one for several that differ in numbers only.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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

/// How a sentence names a budget: "At 25 % of the memory", "Reading 12.5 % of the bytes", "At a budget of 64 tokens".
std::string at_budget(const Budget& budget);

/// "a has the lowest KL on 2 of 3 texts, b on 1": names and their numbers of wins, the most first; those without a win
/// are left out.
std::string wins_text(std::string_view figure, std::vector<std::pair<std::string, std::int64_t>> wins,
                      std::int64_t texts);

/// The names, of which at most `most` are written out: "a, b and 3 more".
std::string listed_up_to(std::vector<std::string> names, std::size_t most = 8);

/// The sentence with # for each number that stands alone, and the word behind it in the singular: equal for "with 1
/// token" and "with 48 tokens".
std::string without_numbers(const std::string& sentence);

/// One sentence for several that are equal without_numbers(): "at least 100 to 128.6 %". `sentences` must not be empty.
std::string with_ranges(std::span<const std::string> sentences);

/// Words in lines of at most `width` characters where possible; lines after the first begin with `indent` spaces.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace kvbench::report
