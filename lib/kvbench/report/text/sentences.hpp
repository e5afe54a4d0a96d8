// SPDX-License-Identifier: Apache-2.0
// Sentences that state an answer: budgets in words, other parts, and one for several that differ in numbers only. The
// sentences about where configurations stand: the only place that words them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kvbench/core/budget.hpp>
#include <kvbench/evidence/standing.hpp>

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

/// What a standing is about.
struct StandingWords {
  std::string at;  ///< how the sentence begins: "At 25 % of the memory"
  std::string is_best = "has the lowest error";
  std::string_view quantity = "error";   ///< of which ratios are
  std::string_view unit = "";            ///< before a mean: "KL "
  std::string best;                      ///< the mean of the best one: "0.1"
  std::string figures = "";              ///< all figures of the best one, where it is named
  std::string_view rows = "this trace";  ///< what cannot tell
  std::string needs = "";                ///< a sentence: what a test would take
  bool table = false;  ///< a table beside it has ratios and intervals, and marks what cannot be told by ~
};

/// The best one, those that no test tells from it, the first that is worse with its ratio and interval, what the tests
/// were made over, and how far that carries. Where everything that was tested is tied, no best one is named. Each list
/// is in ascending order of its numbers.
std::string standing_sentence(const evidence::Standing& standing, const StandingWords& words);

/// Those that were compared and not tested, and what a test takes; "" where there are none.
std::string untested_sentence(const evidence::Standing& standing, const StandingWords& words);

}  // namespace kvbench::report
