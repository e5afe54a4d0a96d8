// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/trials/query_trials.hpp>

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

namespace kvbench::bounds {
namespace {

std::int64_t failures(const QueryTrials& query) {
  return std::ranges::count_if(query.errors, [&](double error) { return !(error <= query.bound); });
}

/// Sort key of the worst query; larger is worse.
std::tuple<std::int64_t, bool, double> severity(const QueryTrials& query) {
  if (query.vacuous()) return {failures(query), false, -query.bound / query.trivial};
  return {failures(query), true, query.errors.empty() ? 0 : quantile(query.errors, 0.99) / query.bound};
}

Figures figures_of(const QueryTrials& query) {
  Figures figures{.bound = query.bound,
                  .literal = query.literal,
                  .tight = query.tight,
                  .data = query.data,
                  .trivial = query.trivial};
  if (query.errors.empty()) return figures;
  figures.measured = mean(query.errors), figures.measured_q99 = quantile(query.errors, 0.99);
  return figures;
}

}  // namespace

CheckRow& add_theorem(CheckContext& context, const Statement& statement, std::span<const QueryTrials> queries,
                      double allowed, std::string text) {
  Index known = 0, informative = 0;
  const QueryTrials* worst = nullptr;
  for (const QueryTrials& query : queries) {
    if (std::isnan(query.bound)) continue;
    ++known;
    informative += !query.vacuous();
    if (worst == nullptr || severity(query) > severity(*worst)) worst = &query;
  }
  text += fmt::format("{}worst of {} queries, {} of them with a bound that is not vacuous", text.empty() ? "" : "; ",
                      queries.size(), informative);
  if (known < std::ssize(queries))
    text += fmt::format(", {} with a bound that is not a number", std::ssize(queries) - known);
  if (worst == nullptr) return context.not_tested(CheckKind::theorem, statement, text);
  CheckRow& row =
      context.theorem(statement, figures_of(*worst), text, {failures(*worst), std::ssize(worst->errors), allowed});
  row.tests = known;
  return row;
}

}  // namespace kvbench::bounds
