// SPDX-License-Identifier: Apache-2.0
#include <apps/validate/mutant_table.hpp>

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

std::vector<report::Block> mutant_summary(std::span<const faithful::MutantResult> results) {
  report::DocTable table{.columns = {{"mutant"}, {"caught by"}, {"fault"}}};
  report::AnswerBlock unexpected;
  std::vector<std::string> exceptions;
  for (const faithful::MutantResult& r : results) {
    table.rows.push_back({r.mutant->id, r.caught_by.empty() ? outcome(r) : joined(r.caught_by), r.mutant->fault});
    if (!r.as_expected())
      unexpected.sentences.push_back(
          fmt::format("missed: {} ({}): {}", r.mutant->id, r.mutant->place, r.mutant->fault));
    if (!r.mutant->exception.empty())
      exceptions.push_back(fmt::format("exception: {}: {}", r.mutant->id, r.mutant->exception));
  }
  std::ranges::move(exceptions, std::back_inserter(unexpected.sentences));
  const auto caught =
      std::ranges::count_if(results, [](const faithful::MutantResult& r) { return !r.caught_by.empty(); });
  std::vector<report::Block> blocks = {
      report::Paragraph{fmt::format("{} of {} planted faults are caught by a violated row.", caught, results.size())},
      std::move(table)};
  if (!unexpected.sentences.empty()) blocks.emplace_back(std::move(unexpected));
  return blocks;
}

}  // namespace kvbench
