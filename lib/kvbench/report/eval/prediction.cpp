// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/prediction.hpp>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/eval/prediction.hpp>
#include <kvbench/report/eval/answer.hpp>
#include <kvbench/report/eval/section.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

constexpr const char* residual_metric = "residual_err";

/// Errors and damage by document; of a section without rows per document, the means over documents as one document.
eval::PredictionGroup prediction_group(const EvalSection& section, const std::string& task, const std::string& metric) {
  const std::string errors_of = error_injection(section);
  const std::string document = section.find(task, "", "all").empty() ? "all" : "";
  std::map<std::string, std::size_t> documents;
  for (const EvalRow* row : section.find(task, document, "all")) documents.try_emplace(row->document, documents.size());
  std::map<std::pair<std::string, std::string>, eval::PredictionRow> rows;
  const auto value_of = [&](const EvalRow& row, std::vector<double> eval::PredictionRow::*values) -> double* {
    const auto at = documents.find(row.document);
    if (row.method == "exact" || at == documents.end()) return nullptr;  // exact has neither error nor damage
    eval::PredictionRow& into = rows[{row.name(), row.budget}];
    const std::vector<double> unknown(documents.size(), NAN);
    if (into.error.empty()) into = {row.name(), row.budget, unknown, unknown};
    return &(into.*values)[at->second];
  };
  for (const EvalRow* row : section.find(task, document, "all")) {
    if (double* damage = value_of(*row, &eval::PredictionRow::damage)) *damage = row->kl.mean;
  }
  for (const EvalRow* row : section.find(task, document, errors_of)) {
    if (double* error = value_of(*row, &eval::PredictionRow::error)) *error = error_of(*row, metric);
  }
  eval::PredictionGroup group{task, {}};
  for (auto& [key, row] : rows) group.rows.push_back(std::move(row));
  return group;
}

eval::Prediction prediction_of(const EvalSection& section, const std::string& metric) {
  std::vector<eval::PredictionGroup> groups;
  for (const std::string& task : section.tasks) groups.push_back(prediction_group(section, task, metric));
  std::erase_if(groups, [](const eval::PredictionGroup& group) { return group.rows.empty(); });
  return predict(groups);
}

std::string agreement_text(double mean, Interval interval) { return interval_text(mean, interval.lo, interval.hi); }
std::string range_of(Interval range) {
  return std::isnan(range.lo) ? "" : fmt::format("{} to {}", three_digits(range.lo), three_digits(range.hi));
}

}  // namespace

double error_of(const EvalRow& row, const std::string& metric) {
  const auto known = replay::find_metric(metric);
  if (!known) return row.residual;
  const double value = row.metrics[index_of(*known)];
  if (info_of(*known).better == replay::Better::smaller) return value;
  return info_of(*known).better == replay::Better::larger ? -value : std::abs(value);
}

std::string error_injection(const EvalSection& section) {
  for (const std::string& task : section.tasks) {
    if (section.find(task, "all", "none").size() < section.find(task, "all", "all").size()) return "all";
  }
  return "none";
}

std::vector<MetricPrediction> predictions_of(const EvalSection& section) {
  std::vector<MetricPrediction> out;
  for (const auto& [info, value] : replay::attention_metrics) {
    const std::string name(info.name);
    out.push_back({name, std::string(info.meaning), prediction_of(section, name)});
  }
  out.push_back({residual_metric, "error of what attention adds to the residual stream, relative to the stream",
                 prediction_of(section, residual_metric)});
  std::erase_if(out, [](const MetricPrediction& p) { return p.prediction.pairs == 0; });
  std::ranges::stable_sort(out, std::greater{}, [](const MetricPrediction& p) {
    return std::pair(p.prediction.agreement, std::isnan(p.prediction.spearman) ? -1 : p.prediction.spearman);
  });
  return out;
}

AnswerBlock eval_answer(const EvalSection& section, const std::vector<MetricPrediction>& all) {
  const RowsOfText rows = rows_of(section);
  AnswerBlock answer{
      fmt::format("{} on {}, {} tokens{}", section.model, section.text, section.context, section.distinction),
      damage_answers(std::span(&rows, 1))};
  if (all.empty()) {
    answer.sentences.push_back(
        "Which attention metric predicts damage to the output is unknown: give at least two methods at one budget.");
    return answer;
  }
  const MetricPrediction& best = all.front();
  const eval::Prediction& p = best.prediction;
  std::string sentence = fmt::format(
      "Of {} attention metrics, {} predicts damage to the output best here: it orders {} of the pairs of methods at "
      "the same budget as KL does (one half: chance)",
      all.size(), best.metric, agreement_text(p.agreement, p.agreement_interval));
  if (!std::isnan(p.spearman))
    sentence += fmt::format(", and its rank correlation with KL over all configurations is {}",
                            agreement_text(p.spearman, p.spearman_interval));
  answer.sentences.push_back(sentence + ".");
  if (std::isnan(p.agreement_interval.lo))
    answer.sentences.push_back("There are no intervals: they need rows of at least two documents of each task.");
  else if (p.agreement_interval.lo <= 0.5)
    answer.sentences.push_back("This is not distinguishable from chance.");
  const auto error = std::ranges::find(all, name_of(replay::metric("rel_err")), &MetricPrediction::metric);
  if (error != all.end() && error != all.begin()) {
    answer.sentences.push_back(
        fmt::format("The relative error of attention orders {} of the pairs as KL does.",
                    agreement_text(error->prediction.agreement, error->prediction.agreement_interval)));
  }
  return answer;
}

DocTable prediction_table(const EvalSection& section, const std::vector<MetricPrediction>& predictions) {
  DocTable table{
      .title = fmt::format("Attention metrics as predictors of KL (errors with --inject {})", error_injection(section)),
      .columns = {{"metric"},
                  {"pairs in the order of KL", true},
                  {"without one method", true},
                  {"rank correlation", true},
                  {"without one method", true},
                  {"pairs", true},
                  {"configurations", true},
                  {"documents", true},
                  {"meaning", false, true}},
      .rows = {},
      .sortable = true};
  for (const MetricPrediction& row : predictions) {
    const eval::Prediction& p = row.prediction;
    table.rows.push_back({row.metric, agreement_text(p.agreement, p.agreement_interval),
                          range_of(p.agreement_without_one), agreement_text(p.spearman, p.spearman_interval),
                          range_of(p.spearman_without_one), fmt::format("{}", p.pairs),
                          fmt::format("{}", p.configurations), fmt::format("{}", p.documents), row.doc});
  }
  return table;
}

}  // namespace kvbench::report
