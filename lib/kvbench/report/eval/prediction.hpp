// SPDX-License-Identifier: Apache-2.0
// Which attention error predicts the damage to the output.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <kvbench/eval/prediction.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/eval/sections.hpp>

namespace kvbench::report {

/// How well a metric of attention predicts KL, over all methods, budgets and tasks of one or several sections.
struct MetricPrediction {
  std::string metric, doc;
  eval::Prediction prediction;
  /// Its shares of all pairs and of close ones, minus those of rel_err on the same pairs.
  eval::ShareDifference over_rel_err, over_rel_err_close;
};
inline constexpr std::size_t fewest_pairs = 10;  ///< from which sentences about metrics are made
struct Predictions {
  /// Those that exist for the most pairs first, the best of them in front; the others are compared on other pairs. None
  /// where there are no two methods at one budget.
  std::vector<MetricPrediction> metrics;
  eval::Ceiling halves, other_texts;  ///< how well KL measured elsewhere predicts KL

  /// Whether there are pairs and documents enough to tell metrics apart.
  bool tell() const {
    return !metrics.empty() && metrics.front().prediction.all.pairs >= fewest_pairs &&
           !std::isnan(metrics.front().prediction.all.interval.lo);
  }
};
/// Pairs are of one section; documents are resampled within each.
Predictions predictions_of(std::span<const EvalSection* const> sections);

/// The attention error of a row by the name of its metric, or residual_err, such that larger is worse.
double error_of(const EvalRow& row, const std::string& metric);
/// The injection whose rows give the attention error: none, which is replay's own error, where all sections have it,
/// otherwise all.
std::string error_injection(const EvalSection& section);
std::string error_injection(std::span<const EvalSection* const> sections);

/// Which metric predicts damage best, where it is told from the relative error, how well, and how well close methods
/// are ordered.
std::vector<std::string> prediction_sentences(const Predictions& predictions);
/// All metrics with their shares and correlation, then KL measured elsewhere.
DocTable prediction_table(const std::string& injection, const Predictions& predictions);
/// Attention error against KL, one drawing per task.
Figure prediction_figure(const EvalSection& section, const std::string& metric);

}  // namespace kvbench::report
