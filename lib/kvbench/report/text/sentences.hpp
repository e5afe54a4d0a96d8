// SPDX-License-Identifier: Apache-2.0
// Parts of the sentences that state an answer.
#pragma once

#include <string>
#include <vector>

#include <kvbench/core/budget.hpp>

namespace kvbench::report {

/// How a sentence names a budget: "At 25 % of the memory", "Reading 12.5 % of the bytes", "At a budget of 64 tokens".
std::string at_budget(const Budget& budget);

/// The names, of which at most `most` are written out: "a, b and 3 more".
std::string listed_up_to(std::vector<std::string> names, std::size_t most = 8);

}  // namespace kvbench::report
