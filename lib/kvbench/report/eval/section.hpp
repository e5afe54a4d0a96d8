// SPDX-License-Identifier: Apache-2.0
// The sections of evaluations of the model's output, their figures, and which attention error predicts the damage.
#pragma once

#include <cmath>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvbench/eval/prediction.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/drawing/charts.hpp>
#include <kvbench/report/eval/answer.hpp>
#include <kvbench/report/eval/sections.hpp>

namespace kvbench::report {

/// The sections of a page: one for the lengths of the context, if there are several of the same documents; one for each
/// model and setting with several texts, of what these say together; then one for each evaluation, folded where the
/// figure over lengths or texts has it.
std::vector<Section> sections_of(std::span<const EvalSection> evaluations);

/// How well a metric of attention predicts KL, over all methods, budgets and tasks of one or several sections.
struct MetricPrediction {
  std::string metric, doc;
  eval::Prediction prediction;
  /// Its shares of all pairs and of close ones, minus those of rel_err on the same pairs.
  eval::ShareDifference over_rel_err, over_rel_err_close;
};
inline constexpr std::size_t fewest_pairs = 10;  ///< from which sentences about metrics are made
struct Predictions {
  /// The injection whose rows give the attention error: none, which is replay's own error, where all sections have it,
  /// otherwise all.
  std::string errors_of;
  /// Those that exist for the most pairs first, the best of them in front; the others are compared on other pairs. None
  /// where there are no two methods at one budget.
  std::vector<MetricPrediction> metrics = {};
  eval::Ceiling halves = {}, other_texts = {};  ///< how well KL measured elsewhere predicts KL

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

/// Which metric predicts damage best, where it is told from the relative error, how well, and how well close methods
/// are ordered.
std::vector<std::string> prediction_sentences(const Predictions& predictions);
/// All metrics with their shares and correlation, then KL measured elsewhere.
DocTable prediction_table(const Predictions& predictions);
/// The error of the best metric against KL, one drawing per task.
Figure prediction_figure(const EvalSection& section, const Predictions& predictions);

/// KL, nll and exact match against bytes, one figure per task.
std::vector<Figure> damage_figures(const EvalSection& section);

/// KL in nats that a replay predicts, by the name and the budget of a configuration.
using PredictedByName = std::map<std::pair<std::string, Budget>, double>;
/// Predicted against measured KL, one drawing per task; without drawings where no configuration has both. `trace`: of
/// the predictions.
Figure predicted_figure(const EvalSection& section, const PredictedByName& predicted, const std::string& trace);

/// KL of a configuration at lengths of the context, or at turns.
struct KlCurve {
  const EvalRow* row;              ///< names the configuration
  std::string drawing;             ///< title of the drawing that has it
  std::vector<Index> at;           ///< x, ascending, at least one
  std::vector<eval::Estimate> kl;  ///< by x
};
/// `figure` with a drawing for each title, all with the same axes; x has the scale and the title of `x`.
Figure kl_figure(Figure figure, std::span<const KlCurve> curves, const Axis& x, const EvalSection& section);

/// The ratio of each method's KL to the best, one drawing per task and budget.
Figure standing_figure(const TextsTogether& texts);

/// Growth of errors with depth, additivity, and sensitivity per layer, as far as the rows have them.
std::vector<Block> depth_blocks(const EvalSection& section);

}  // namespace kvbench::report
