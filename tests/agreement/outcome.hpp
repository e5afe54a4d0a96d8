// SPDX-License-Identifier: Apache-2.0
// What a method did on one backend, and whether another backend did the same.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <support/rows.hpp>

namespace kvbench::testing {

struct Pair {
  std::unique_ptr<Backend> trusted, tested;
};
/// The pairs of this binary.
std::vector<Pair> pairs_under_test();
/// Tokens of a context of many tiles: fewer where the steps of a device are emulated.
Index many_tokens();

/// How a method is asked.
struct Run {
  Row row;
  Index budget = 0;
  std::uint32_t seed = 0;
  bool decode = false;  ///< tokens arrive one after the other; else the context is compressed once
};

/// [head][step]; prefill is one step. Absent: the method refused.
using Outcome = std::optional<std::vector<std::vector<Result>>>;
Outcome outcome_of(const Run& run, const Heads& heads, Backend& backend);

/// The same tokens answer every query, in the same sums.
bool same_decisions(const Outcome& a, const Outcome& b);

/// The first thing that differs where both decided alike: a weight by more than 1e-4 of its size, or an answer by more than
/// 1e-4 of the largest of its row. Empty: none.
std::string difference(const Outcome& a, const Outcome& b);

/// True where inputs that differ from `heads` by at most a hundred-thousandth of their size lead the same backend to other
/// decisions: the margin of one of them is so small that backends may part there.
bool undecided(const Run& run, const Heads& heads, const Outcome& outcome, Backend& backend);

}  // namespace kvbench::testing
