// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/texts.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/core/statistics.hpp>

namespace kvbench {
namespace {

using Setting = std::pair<std::string, std::string>;  // method, params
using Text = std::pair<std::string, std::string>;     // sha256 of the trace, prompt
using Errors = std::map<Setting, std::map<Text, double>>;

/// The errors of one protocol and budget.
struct BudgetRows {
  Protocol protocol;
  std::string budget;
  std::vector<Text> texts;
  Errors errors;
};

bool is_row_of_text(const Record& r) {
  return !r.layer && !r.query_head && r.prompt != "all" && r.status == Status::ok && !is_baseline(r.method) &&
         std::isfinite(r.of(Metric::rel_err).mean);
}

std::vector<BudgetRows> groups_of(std::span<const Record> records) {
  std::vector<BudgetRows> groups;
  for (const Record& r : records) {
    if (!is_row_of_text(r)) continue;
    auto group =
        std::ranges::find_if(groups, [&](const BudgetRows& g) { return g.protocol == r.protocol && g.budget == r.budget; });
    if (group == groups.end()) group = groups.insert(groups.end(), {r.protocol, r.budget, {}, {}});
    const Text text(r.sha256, r.prompt);
    if (std::ranges::find(group->texts, text) == group->texts.end()) group->texts.push_back(text);
    group->errors[{r.method, r.params}][text] = r.of(Metric::rel_err).mean;
  }
  for (BudgetRows& group : groups) {
    std::erase_if(group.errors, [&](const auto& row) { return row.second.size() < group.texts.size(); });
  }
  return groups;
}

/// Adds the ranks and wins of one text.
void add_ranks(const Errors& errors, const Text& text, std::map<Setting, TextSummary>& summaries) {
  for (const auto& [configuration, own] : errors) {
    double lower = 0, equal = 0;
    for (const auto& [other, theirs] : errors) {
      lower += theirs.at(text) < own.at(text);
      equal += theirs.at(text) == own.at(text);
    }
    TextSummary& summary = summaries[configuration];
    summary.mean_rank += lower + (equal + 1) / 2;
    summary.wins += lower == 0;
  }
}

std::vector<TextSummary> summarize(const BudgetRows& group) {
  std::map<Setting, TextSummary> summaries;
  for (const Text& text : group.texts) add_ranks(group.errors, text, summaries);
  std::vector<TextSummary> out;
  for (auto& [configuration, summary] : summaries) {
    std::vector<double> logs;
    for (const auto& [text, error] : group.errors.at(configuration)) logs.push_back(std::log(std::max(error, 1e-8)));
    std::tie(summary.method, summary.params) = configuration;
    summary.budget = group.budget;
    summary.texts = std::ssize(logs);
    summary.mean_rank /= static_cast<double>(logs.size());
    summary.error = std::exp(mean(logs));
    summary.interval = {NAN, NAN};
    if (logs.size() > 2) {
      const Interval interval = student_interval(logs);
      summary.interval = {std::exp(interval.lo), std::exp(interval.hi)};
    }
    out.push_back(std::move(summary));
  }
  std::ranges::stable_sort(out, {}, &TextSummary::error);
  return out;
}

}  // namespace

std::vector<TextSummary> summarize_texts(std::span<const Record> records) {
  std::vector<TextSummary> out;
  for (const BudgetRows& group : groups_of(records)) {
    if (group.texts.size() < 2) continue;
    std::ranges::move(summarize(group), std::back_inserter(out));
  }
  return out;
}

}  // namespace kvbench
