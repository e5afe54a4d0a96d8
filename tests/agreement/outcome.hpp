// SPDX-License-Identifier: Apache-2.0
// The results of a method on one backend, and their comparison with another backend.
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
/// Tokens of a context of many tiles, and budgets of a short one; fewer on an emulated device.
Index many_tokens();
std::vector<Index> prefill_budgets();

/// A run of a method.
struct Run {
  Row row;
  Index budget = 0;
  std::uint32_t seed = 0;
  bool decode = false;  ///< tokens are appended in order; otherwise the context is compressed once
};

/// [head][step]; prefill is one step. Absent: the method was infeasible or unavailable.
using Outcome = std::optional<std::vector<std::vector<Result>>>;
Outcome outcome_of(const Run& run, const Heads& heads, Backend& backend);

/// Whether the same tokens answer every query, in the same sums.
bool same_decisions(const Outcome& a, const Outcome& b);

/// The first difference where both made the same decisions: a weight by more than 1e-4 of its size, or an answer by
/// more than 1e-4 of the largest of its row. Empty: none.
std::string difference(const Outcome& a, const Outcome& b);

/// Whether inputs that differ from `heads` by at most a hundred-thousandth of their size lead the same backend to other
/// decisions: one of the margins is then so small that backends may differ.
bool undecided(const Run& run, const Heads& heads, const Outcome& outcome, Backend& backend);

}  // namespace kvbench::testing
