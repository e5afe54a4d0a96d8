// SPDX-License-Identifier: Apache-2.0
// Sorts the rows of evaluations (kveval) into the sections of a report.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kvbench/eval/prediction.hpp>
#include <kvbench/report/csv_reader.hpp>
#include <kvbench/report/document.hpp>

namespace kvbench {

/// A row of an evaluation that is ok, over all layers or of one.
struct EvalRow {
  const CsvTable* table;
  const CsvRow* row;
  std::string task, document, inject, layer, method, params, budget;
  std::optional<std::int64_t> inject_layer;
  double held = NAN;  ///< total_bytes / full_bytes
  double kl = NAN;

  std::string name() const { return params.empty() ? method : method + " " + params; }
  const std::string& text(const char* column) const { return table->text(*row, column); }
  double number(const std::string& column) const { return table->number(*row, column); }
  /// "0.117 [0.112, 0.122]" of a figure with the columns NAME, NAME_lo and NAME_hi, the first one as given.
  std::string interval(const char* column, const std::string& stem) const;
};

/// The rows of one model, text and form of the documents.
struct EvalSection {
  std::string model, text, context, question, device;
  std::vector<EvalRow> rows;
  std::vector<EvalRow> broken;                       ///< over all documents, not ok
  std::vector<std::string> tasks, budgets, methods;  ///< in order of appearance; methods with their parameters

  /// Rows over all layers with this task, document ("all", or "": single documents) and injection.
  std::vector<const EvalRow*> find(const std::string& task, const std::string& document,
                                   const std::string& inject) const;
  int style_of(const EvalRow& row) const;  ///< colour and marker of its method in all figures
};

/// Of equal rows of several files the first counts. Throws Error where a file has a row twice.
std::vector<EvalSection> eval_sections(std::span<const CsvTable* const> tables);

/// The budget whose share is nearest to a quarter; "" where there is none.
std::string quarter_of(const EvalSection& section);

/// How well a metric of attention predicts KL, over all methods, budgets and tasks of a section.
struct MetricPrediction {
  std::string metric, doc;
  Prediction prediction;
};
/// The best one first; none where there are no two methods at one budget.
std::vector<MetricPrediction> predictions_of(const EvalSection& section);

/// The first sentences of the report: which attention metric predicts damage best, and how well.
AnswerBlock eval_answer(const EvalSection& section, const std::vector<MetricPrediction>& predictions);
/// The heading (level 2), figures and tables of a section.
std::vector<Block> eval_blocks(const EvalSection& section, const std::vector<MetricPrediction>& predictions);

// Parts of eval_blocks(), one source file each.

/// All metrics with their agreement and correlation.
DocTable prediction_table(const EvalSection& section, const std::vector<MetricPrediction>& predictions);
/// KL, nll and exact match against bytes, one figure per task.
std::vector<Block> damage_figures(const EvalSection& section);
/// Attention error against KL, one drawing per task.
Figure prediction_figure(const EvalSection& section, const std::string& metric);
/// Growth of errors with depth, additivity, and sensitivity per layer, as far as the rows have them.
std::vector<Block> depth_blocks(const EvalSection& section);

/// The attention error of a row by the name of its metric, such that larger is worse.
double error_of(const EvalRow& row, const std::string& metric);
/// The injection whose rows give the attention error: none, which is replay's own error, where the section has it, otherwise
/// all.
std::string error_injection(const EvalSection& section);

}  // namespace kvbench
