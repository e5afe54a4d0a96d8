// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/query_trials.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace kvbench {
namespace {

std::int64_t failures(const QueryTrials& query) {
  return std::ranges::count_if(query.errors, [&](double error) { return !(error <= query.bound); });
}

/// Sort key of the worst query; larger is worse.
double severity(const QueryTrials& query) {
  if (query.vacuous()) return -query.bound / query.trivial;
  if (query.errors.empty()) return 0;
  return static_cast<double>(failures(query)) + 1 / (1 + query.bound / quantile(query.errors, 0.99));
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
  if (queries.empty()) return;
  const auto informative = std::ranges::count_if(queries, [](const QueryTrials& query) { return !query.vacuous(); });
  const QueryTrials* worst = nullptr;
  for (const QueryTrials& query : queries) {
    if (informative > 0 && query.vacuous()) continue;
    if (worst == nullptr || severity(query) > severity(*worst)) worst = &query;
  }
  show(row, *worst);
  row.allowed = allowed;
  if (informative > 0 && row.trials) {
    // The smallest of Holm's adjusted p-values is that of Bonferroni.
    row.p_value = std::min(1.0, binomial_tail(*row.failures, *row.trials, allowed) * static_cast<double>(informative));
  }
  row.text += fmt::format("{}worst of {} queries, {} of them with a bound that is not vacuous", row.text.empty() ? "" : "; ",
                          queries.size(), informative);
}

}  // namespace kvbench
