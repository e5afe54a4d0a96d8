// SPDX-License-Identifier: Apache-2.0
// What a budget means for BalanceKV, counted by going through the rounds and levels one by one.
#pragma once

#include <optional>

#include <kvbench/bounds/trials/stream.hpp>
#include <kvbench/faithful/oracle/balancekv_rules.hpp>

namespace kvbench::faithful {

/// Rounds and window of a budget (section 4): the smallest T at which some window of recent tokens, which are kept
/// exactly, and at most half of the others per round fit; of these windows the shortest that uses most of the budget.
/// Absent: nothing fits.
struct PaperRounds {
  Index rounds = 0, recent = 0;
};
std::optional<PaperRounds> rounds_of_budget(Index tokens, Index budget, const BalanceSetup& setup);

/// t and T of a budget: setup.t and .rounds where they are given, else the largest even t with T = log2(n / t), rounded
/// up, whose sets N and D at the end of the context hold at most budget (d + dv) numbers. Absent: nothing fits.
struct PaperTreeSize {
  Index t = 2, levels = 0;
};
std::optional<PaperTreeSize> tree_of_budget(const bounds::Subject& subject, const bounds::StreamPlan& plan,
                                            const BalanceSetup& setup);

}  // namespace kvbench::faithful
