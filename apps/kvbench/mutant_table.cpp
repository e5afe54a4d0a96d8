// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/mutant_table.hpp>

#include <algorithm>

#include <fmt/ranges.h>

namespace kvbench {
namespace {

std::string joined(const std::vector<std::string>& ids) { return fmt::format("{}", fmt::join(ids, " ")); }

std::string outcome(const faithful::MutantResult& r) {
  if (!r.caught_by.empty()) return "caught";
  return r.mutant->exception.empty() ? "missed" : "exception";
}

using MutantValue = report::Value<faithful::MutantResult>;

MutantValue of_mutant(std::string faithful::Mutant::*member) {
  return {.print = [member](const faithful::MutantResult& r) { return r.mutant->*member; }};
}

}  // namespace

std::span<const report::Column<faithful::MutantResult>> mutant_columns() {
  static const std::vector<report::Column<faithful::MutantResult>> table = {
      {"mutant", "id of the planted fault", of_mutant(&faithful::Mutant::id)},
      {"method", "method that would have the fault", of_mutant(&faithful::Mutant::method)},
      {"fault", "what is wrong", of_mutant(&faithful::Mutant::fault)},
      {"place", "place of the correct rule in the paper", of_mutant(&faithful::Mutant::place)},
      {"outcome", "caught; missed; exception: no check has to catch it", {.print = outcome}},
      {"caught_by",
       "ids of the claims with a violated row",
       {.print = [](const faithful::MutantResult& r) { return joined(r.caught_by); }}},
      {"checks",
       "ids of the claims that ran with the fault in place",
       {.print = [](const faithful::MutantResult& r) { return joined(r.ran); }}},
      {"first", "the first violated row", report::value_of(&faithful::MutantResult::first)},
      {"exception", "why no check has to catch the fault", of_mutant(&faithful::Mutant::exception)},
      report::version_column<faithful::MutantResult>(),
      report::commit_column<faithful::MutantResult>(),
  };
  return table;
}

std::string mutant_csv(std::span<const faithful::MutantResult> results) { return csv_of(mutant_columns(), results); }

std::string mutant_summary(std::span<const faithful::MutantResult> results) {
  report::TextRows rows = {{"mutant", "caught by", "fault"}};
  std::string unexpected, exceptions;
  for (const faithful::MutantResult& r : results) {
    rows.push_back({r.mutant->id, r.caught_by.empty() ? outcome(r) : joined(r.caught_by), r.mutant->fault});
    if (!r.as_expected())
      unexpected += fmt::format("missed: {} ({}): {}\n", r.mutant->id, r.mutant->place, r.mutant->fault);
    if (!r.mutant->exception.empty())
      exceptions += fmt::format("exception: {}: {}\n", r.mutant->id, r.mutant->exception);
  }
  const auto caught =
      std::ranges::count_if(results, [](const faithful::MutantResult& r) { return !r.caught_by.empty(); });
  return fmt::format("{} of {} planted faults are caught by a violated row.\n", caught, results.size()) +
         report::aligned_rows(rows, [](std::size_t) { return true; }) + unexpected + exceptions;
}

}  // namespace kvbench
