// SPDX-License-Identifier: Apache-2.0
// Reasons that many rows repeat.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/replay/records/record.hpp>

namespace kvbench::report {

/// Rows with the same status, similar reasons (without_numbers()) and budgets of one kind. Every one of the methods has
/// them at all of the budgets, layers and prompts, in each of the traces.
struct ReasonGroup {
  replay::Status status;
  std::string reason;  ///< numbers in which the rows differ are ranges
  std::vector<std::string> methods;
  std::vector<Budget> budgets;
  std::vector<std::string> layers, prompts, traces;
  std::size_t rows = 0;
};

/// In order of appearance.
std::vector<ReasonGroup> reason_groups(std::span<const replay::Record* const> rows);

/// "infeasible at 25 % of the memory: quest, clusterkv (the method costs at least 100 to 106.3 % of the full cache)":
/// one sentence per group of the rows that are not ok.
std::vector<std::string> reason_sentences(std::span<const replay::Record> rows);

}  // namespace kvbench::report
