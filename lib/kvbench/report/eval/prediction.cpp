// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/section.hpp>

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

const std::string_view relative_error = name_of(replay::Metric::rel_err);

/// Errors and damage by document; of a section without rows per document, the means over documents as one document.
eval::PredictionGroup prediction_group(const EvalSection& section, const std::string& task, const std::string& metric,
                                       const std::string& errors_of) {
  const std::string document = section.find(task, "", "all").empty() ? "all" : "";
  std::map<std::string, std::size_t> documents;
  for (const EvalRow* row : section.find(task, document, "all")) documents.try_emplace(row->document, documents.size());
  std::map<std::pair<std::string, Budget>, eval::PredictionRow> rows;
  const auto value_of = [&](const EvalRow& row, std::vector<double> eval::PredictionRow::*values) -> double* {
    const auto at = documents.find(row.document);
    if (row.method == "exact" || at == documents.end()) return nullptr;  // exact has neither error nor damage
    eval::PredictionRow& into = rows[{row.name(), row.budget}];
    const std::vector<double> unknown(documents.size(), NAN);
    if (into.error.empty()) into = {row.name(), row.budget, unknown, unknown};
    return &(into.*values)[at->second];
  };
  for (const EvalRow* row : section.find(task, document, "all")) {
    if (double* damage = value_of(*row, &eval::PredictionRow::damage)) *damage = kl_of(*row).mean;
  }
  for (const EvalRow* row : section.find(task, document, errors_of)) {
    if (double* error = value_of(*row, &eval::PredictionRow::error)) *error = error_of(*row, metric);
  }
  eval::PredictionGroup group{task, {}};
  for (auto& [key, row] : rows) group.rows.push_back(std::move(row));
  return group;
}

/// The groups of all tasks of all sections: damage is compared within a task of a section only.
std::vector<eval::PredictionGroup> prediction_groups(std::span<const EvalSection* const> sections,
                                                     const std::string& metric, const std::string& errors_of) {
  std::vector<eval::PredictionGroup> groups;
  for (const EvalSection* section : sections) {
    for (const std::string& task : section->tasks)
      groups.push_back(prediction_group(*section, task, metric, errors_of));
  }
  std::erase_if(groups, [](const eval::PredictionGroup& group) { return group.rows.empty(); });
  return groups;
}

/// Of `groups`, the figures on the documents of which a row of `others` has both figures too.
std::vector<eval::PredictionGroup> on_documents_of(std::span<const eval::PredictionGroup> others,
                                                   std::vector<eval::PredictionGroup> groups) {
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t r = 0; r < groups[g].rows.size(); ++r) {
      const std::vector<double>& known = others[g].rows[r].error;
      for (std::size_t d = 0; d < known.size(); ++d) {
        if (std::isnan(known[d])) groups[g].rows[r].error[d] = NAN;
      }
    }
  }
  return groups;
}

std::string agreement_text(double mean, Interval interval) { return interval_text(mean, interval.lo, interval.hi); }
std::string difference_text(const eval::ShareDifference& d) {
  return std::isnan(d.value) ? "" : agreement_text(d.value, d.interval);
}
std::string share_text(const eval::PairOrder& order) {
  return std::isnan(order.share) ? "" : agreement_text(order.share, order.interval);
}
std::string range_of(Interval range) {
  return std::isnan(range.lo) ? "" : fmt::format("{} to {}", three_digits(range.lo), three_digits(range.hi));
}

/// How well a metric orders close pairs, beside what KL measured elsewhere does.
std::string close_sentence(const Predictions& all, const MetricPrediction& metric) {
  const eval::PairOrder& close = metric.prediction.close;
  std::string out = fmt::format(
      "Of the {} close pairs (KL within a factor of {}), between which a choice is difficult, "
      "{} orders {}",
      close.pairs, eval::close_factor, metric.metric, share_text(close));
  if (!std::isnan(all.halves.close))
    out += fmt::format("; KL on one half of the documents orders {} of them as on the other half",
                       three_digits(all.halves.close));
  if (!std::isnan(all.other_texts.close))
    out += fmt::format(", and KL on another text {}", three_digits(all.other_texts.close));
  return out + ".";
}

/// Of the metrics on the pairs of all methods, the best that orders more pairs than the relative error by Holm over
/// these metrics; otherwise the relative error, or the best one where that is missing.
const MetricPrediction& told_best(std::span<const MetricPrediction> comparable) {
  std::vector<const MetricPrediction*> others;
  std::vector<double> p_values;
  const MetricPrediction* relative = &comparable.front();
  for (const MetricPrediction& metric : comparable) {
    if (metric.metric == relative_error) relative = &metric;
    if (metric.metric == relative_error || std::isnan(metric.over_rel_err.p_value)) continue;
    others.push_back(&metric), p_values.push_back(metric.over_rel_err.p_value);
  }
  const std::vector<double> adjusted = holm(p_values);
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (adjusted[i] <= decided_at && others[i]->over_rel_err.value > 0) return *others[i];
  }
  return *relative;
}

std::string best_sentence(const Predictions& all, std::span<const MetricPrediction> comparable,
                          const MetricPrediction& said) {
  const std::string of = fmt::format("Of {} attention metrics{}", comparable.size(),
                                     comparable.size() == all.metrics.size() ? "" : " that all methods have");
  const std::string pairs = "of the pairs of methods at the same budget as KL does (one half: chance)";
  const std::string share = share_text(said.prediction.all);
  if (said.metric != relative_error)
    return fmt::format(
        "{}, {} predicts damage to the output best here: it orders {} {}, {} more than the relative error.", of,
        said.metric, share, pairs, difference_text(said.over_rel_err));
  std::string out = fmt::format(
      "{}, none predicts damage to the output better than the relative error here, as far as "
      "these documents tell: rel_err orders {} {}",
      of, share, pairs);
  const MetricPrediction& first = comparable.front();
  if (&first != &said)
    out += fmt::format("; {} has the largest share, {}", first.metric, three_digits(first.prediction.all.share));
  return out + ".";
}

std::string error_injection(std::span<const EvalSection* const> sections) {
  for (const EvalSection* section : sections) {
    for (const std::string& task : section->tasks) {
      if (section->find(task, "all", "none").size() < section->find(task, "all", "all").size()) return "all";
    }
  }
  return "none";
}

}  // namespace

double error_of(const EvalRow& row, const std::string& metric) {
  const auto known = replay::find_metric(metric);
  if (!known || *known == replay::Metric::residual_err) return row.residual;
  const double value = row.metrics[*known];
  if (info_of(*known).better == replay::Better::smaller) return value;
  return info_of(*known).better == replay::Better::larger ? -value : std::abs(value);
}

Predictions predictions_of(std::span<const EvalSection* const> sections) {
  Predictions out{.errors_of = error_injection(sections)};
  const std::vector<eval::PredictionGroup> relative =
      prediction_groups(sections, std::string(relative_error), out.errors_of);
  const auto add = [&](std::string name, std::string meaning) {
    const std::vector<eval::PredictionGroup> groups = prediction_groups(sections, name, out.errors_of);
    MetricPrediction metric{std::move(name), std::move(meaning), eval::predict(groups), {}, {}};
    if (metric.prediction.all.pairs == 0) return;
    const eval::Prediction reference = eval::predict(on_documents_of(groups, relative));
    metric.over_rel_err = eval::difference(metric.prediction.all, reference.all);
    metric.over_rel_err_close = eval::difference(metric.prediction.close, reference.close);
    out.metrics.push_back(std::move(metric));
  };
  for (const replay::Metric metric : replay::all_metrics())
    add(std::string(name_of(metric)), std::string(info_of(metric).meaning));
  std::size_t most = 0;
  for (const MetricPrediction& p : out.metrics) most = std::max(most, p.prediction.all.pairs);
  std::ranges::stable_sort(out.metrics, std::greater{}, [&](const MetricPrediction& p) {
    const eval::Prediction& of = p.prediction;
    return std::tuple(of.all.pairs == most, of.all.share, std::isnan(of.spearman) ? -1 : of.spearman);
  });
  // These look at the damage alone, which is the same for every metric.
  out.halves = eval::half_against_half(relative), out.other_texts = eval::group_against_group(relative);
  return out;
}

std::vector<std::string> prediction_sentences(const Predictions& all) {
  if (all.metrics.empty())
    return {
        "Which attention metric predicts damage to the output is unknown: that takes two methods at one budget, and "
        "the errors of layers that kvbench eval measures."};
  const MetricPrediction& best = all.metrics.front();
  const std::size_t pairs = best.prediction.all.pairs;
  if (!all.tell())
    return {
        pairs < fewest_pairs
            ? fmt::format("{} pair{} of methods cannot tell which attention metric predicts damage to the output: it "
                          "takes {}, as of five methods at one budget.",
                          pairs, pairs == 1 ? "" : "s", fewest_pairs)
            : "Which attention metric predicts damage to the output cannot be told without rows of at least two "
              "documents of each task (--per-document)."};
  const auto others =
      std::ranges::find_if(all.metrics, [&](const MetricPrediction& m) { return m.prediction.all.pairs != pairs; });
  const std::span<const MetricPrediction> comparable(all.metrics.begin(), others);
  const MetricPrediction& said = told_best(comparable);
  std::vector<std::string> out = {best_sentence(all, comparable, said)};
  if (said.prediction.all.interval.lo <= 0.5) out.push_back("This is not distinguishable from chance.");
  if (said.prediction.close.pairs > 0) out.push_back(close_sentence(all, said));
  return out;
}

DocTable prediction_table(const Predictions& predictions) {
  using Row = MetricPrediction;
  const auto is_relative = [](const Row& r) { return r.metric == relative_error; };
  DocTable table = filled<Row>(
      {.title = fmt::format("Attention metrics as predictors of KL (errors with --inject {})", predictions.errors_of),
       .folded = !predictions.tell(),
       .sortable = true},
      {{{"metric"}, &Row::metric},
       {{"pairs in the order of KL", true}, [](const Row& r) { return share_text(r.prediction.all); }},
       {{"close pairs", true}, [](const Row& r) { return share_text(r.prediction.close); }},
       {{"minus rel_err", true}, [=](const Row& r) { return is_relative(r) ? "" : difference_text(r.over_rel_err); }},
       {{"close, minus rel_err", true},
        [=](const Row& r) { return is_relative(r) ? "" : difference_text(r.over_rel_err_close); }},
       {{"without one method", true, false, true},
        [](const Row& r) { return range_of(r.prediction.share_without_one); }},
       {{"rank correlation", true, false, true},
        [](const Row& r) { return agreement_text(r.prediction.spearman, r.prediction.spearman_interval); }},
       {{"without one method", true, false, true},
        [](const Row& r) { return range_of(r.prediction.spearman_without_one); }},
       {{"pairs, close", true},
        [](const Row& r) { return fmt::format("{}, {}", r.prediction.all.pairs, r.prediction.close.pairs); }},
       {{"configurations", true, false, true},
        [](const Row& r) { return std::to_string(r.prediction.configurations); }},
       {{"documents", true, false, true}, [](const Row& r) { return std::to_string(r.prediction.documents); }},
       {{"meaning", false, true, true}, &Row::doc}},
      predictions.metrics);
  const auto add_ceiling = [&](const char* name, const eval::Ceiling& ceiling, const char* meaning) {
    if (std::isnan(ceiling.all)) return;
    auto& cells = table.rows.emplace_back(table.columns.size());
    cells[0] = name, cells[1] = three_digits(ceiling.all), cells[2] = three_digits(ceiling.close),
    cells.back() = meaning;
  };
  add_ceiling("(KL, other half)", predictions.halves, "KL on one half of the documents, against KL on the other half");
  add_ceiling("(KL, other text)", predictions.other_texts, "KL on another text");
  return compact(std::move(table));
}

}  // namespace kvbench::report
