// SPDX-License-Identifier: Apache-2.0
// Sorts the rows of evaluations (kveval) into the sections of a report.
#pragma once

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

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

}  // namespace kvbench::report
