// SPDX-License-Identifier: Apache-2.0
// Parts of the sentences that state an answer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <kvbench/core/budget.hpp>

namespace kvbench::report {

/// How a sentence names a budget: "At 25 % of the memory", "Reading 12.5 % of the bytes", "At a budget of 64 tokens".
std::string at_budget(const Budget& budget);

/// "a has the lowest KL on 2 of 3 texts, b on 1": names and their numbers of wins; those without a win are left out.
std::string wins_text(std::string_view figure, std::span<const std::pair<std::string, std::int64_t>> wins,
                      std::int64_t texts);

/// The names, of which at most `most` are written out: "a, b and 3 more".
std::string listed_up_to(std::vector<std::string> names, std::size_t most = 8);

}  // namespace kvbench::report
