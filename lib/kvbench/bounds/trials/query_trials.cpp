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

void show(CheckRow& row, const QueryTrials& query) {
  row.literal = query.literal;
  row.tight = query.tight;
  row.data = query.data;
  row.bound = query.bound;
  row.trivial = query.trivial;
  if (query.errors.empty()) return;
  row.measured = mean(query.errors);
  row.measured_q99 = quantile(query.errors, 0.99);
  row.failures = failures(query);
  row.trials = static_cast<std::int64_t>(query.errors.size());
}

}  // namespace

void fill_worst_query(CheckRow& row, std::span<const QueryTrials> queries, double allowed) {
  Index known = 0, informative = 0;
  const QueryTrials* worst = nullptr;
  for (const QueryTrials& query : queries) {
    if (std::isnan(query.bound)) continue;
    ++known;
    informative += !query.vacuous();
    if (worst == nullptr || severity(query) > severity(*worst)) worst = &query;
  }
  row.text += fmt::format("{}worst of {} queries, {} of them with a bound that is not vacuous",
                          row.text.empty() ? "" : "; ", queries.size(), informative);
  if (known < std::ssize(queries))
    row.text += fmt::format(", {} with a bound that is not a number", std::ssize(queries) - known);
  if (worst == nullptr) {
    row.assumptions = false;
    return;
  }
  show(row, *worst);
  row.allowed = allowed;
  row.tests = known;
}

}  // namespace kvbench::bounds
