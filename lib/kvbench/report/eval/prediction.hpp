// SPDX-License-Identifier: Apache-2.0
// Which attention error predicts the damage to the output.
#pragma once

#include <string>
#include <vector>

#include <kvbench/eval/prediction.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/eval/sections.hpp>

namespace kvbench::report {

/// How well a metric of attention predicts KL, over all methods, budgets and tasks of a section.
struct MetricPrediction {
  std::string metric, doc;
  eval::Prediction prediction;
};
/// The best one first; none where there are no two methods at one budget.
std::vector<MetricPrediction> predictions_of(const EvalSection& section);

/// The attention error of a row by the name of its metric, or residual_err, such that larger is worse.
double error_of(const EvalRow& row, const std::string& metric);
/// The injection whose rows give the attention error: none, which is replay's own error, where the section has it,
/// otherwise all.
std::string error_injection(const EvalSection& section);

/// All metrics with their agreement and correlation.
DocTable prediction_table(const EvalSection& section, const std::vector<MetricPrediction>& predictions);
/// Attention error against KL, one drawing per task.
Figure prediction_figure(const EvalSection& section, const std::string& metric);

}  // namespace kvbench::report
