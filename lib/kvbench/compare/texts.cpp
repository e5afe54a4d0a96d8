// SPDX-License-Identifier: Apache-2.0
#include <kvbench/compare/texts.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/core/statistics.hpp>

namespace kvbench::compare {
namespace {

using Setting = std::pair<std::string, std::string>;  // method, params
using Text = std::pair<std::string, std::string>;     // sha256 of the trace, prompt
using Errors = std::map<Setting, std::map<Text, double>>;

/// The errors of one protocol and budget.
struct BudgetRows {
  std::set<Text> texts;
  Errors errors;
};
using Groups = OrderedMap<std::tuple<replay::Protocol, Budget, replay::FigureNumber>, BudgetRows>;

bool is_row_of_text(const replay::Record& r) {
  return !r.layer && !r.query_head && !r.over_prompts() && r.status == replay::Status::ok && !r.dense &&
         !is_baseline(r.method) && !r.calibrated_on_itself() && !r.is_outside() && std::isfinite(r.ranked_mean());
}

Groups groups_of(std::span<const replay::Record> records) {
  Groups groups;
  // Rows that mark_best() did not compare answered other layers or queries; files may have none that it has seen.
  const bool marked =
      std::ranges::any_of(records, [](const replay::Record& r) { return is_row_of_text(r) && !r.best.empty(); });
  for (const replay::Record& r : records) {
    if (!is_row_of_text(r) || (marked && r.best.empty())) continue;
    BudgetRows& group = groups[{r.protocol, r.budget, r.ranked_by}];
    const Text text(r.sha256, r.prompt);
    group.texts.insert(text);
    group.errors[{r.method, r.params}][text] = r.ranked_mean();
  }
  for (auto& item : groups.items()) {
    BudgetRows& group = item.second;
    std::erase_if(group.errors, [&](const auto& row) { return row.second.size() < group.texts.size(); });
  }
  return groups;
}

/// Adds the ranks and wins of one text. Both maps have the same configurations.
void add_ranks(const Errors& errors, const Text& text, std::map<Setting, TextSummary>& summaries) {
  std::vector<double> own;
  for (const auto& [configuration, of_texts] : errors) own.push_back(of_texts.at(text));
  std::vector<double> sorted = own;
  std::ranges::sort(sorted);
  std::size_t next = 0;
  for (auto& [configuration, summary] : summaries) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), own[next++]);
    const auto lower = static_cast<double>(first - sorted.begin());
    summary.mean_rank += lower + (static_cast<double>(last - first) + 1) / 2;
    summary.wins += lower == 0;
  }
}

std::vector<TextSummary> summarize(const Budget& budget, replay::FigureNumber figure, const BudgetRows& group) {
  std::map<Setting, TextSummary> summaries;
  for (const auto& [configuration, errors] : group.errors) summaries[configuration];
  for (const Text& text : group.texts) add_ranks(group.errors, text, summaries);
  std::vector<TextSummary> out;
  for (auto& [configuration, summary] : summaries) {
    std::vector<double> logs;
    for (const auto& [text, error] : group.errors.at(configuration)) logs.push_back(replay::log_error(error));
    std::tie(summary.method, summary.params) = configuration;
    summary.budget = budget, summary.figure = figure;
    summary.texts = std::ssize(logs);
    summary.mean_rank /= static_cast<double>(logs.size());
    summary.error = std::exp(mean(logs));
    summary.interval = {NAN, NAN};
    const bool exact =
        std::ranges::any_of(group.errors.at(configuration), [](const auto& one) { return one.second == 0; });
    if (exact) summary.error = 0;
    if (logs.size() > 2 && !exact) {
      const Interval interval = student_interval(logs);
      summary.interval = {std::exp(interval.lo), std::exp(interval.hi)};
    }
    out.push_back(std::move(summary));
  }
  std::ranges::stable_sort(out, {}, &TextSummary::error);
  return out;
}

}  // namespace

std::vector<TextSummary> summarize_texts(std::span<const replay::Record> records) {
  std::vector<TextSummary> out;
  const Groups groups = groups_of(records);
  for (const auto& [key, group] : groups.items()) {
    if (group.texts.size() < 2) continue;
    const auto& [protocol, budget, figure] = key;
    std::ranges::move(summarize(budget, figure, group), std::back_inserter(out));
  }
  return out;
}

}  // namespace kvbench::compare
