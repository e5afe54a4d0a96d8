// SPDX-License-Identifier: Apache-2.0
// Sorts the rows of evaluations (kveval) into the sections of a report.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/eval/eval_record.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

/// A row of an evaluation, over all layers or of one.
struct EvalRow : eval::EvalRecord {
  std::string name() const { return params.empty() ? method : method + " " + params; }
  double held() const { return bytes.of(CostKind::memory) / bytes.full; }
};

/// The rows of one model, text and form of the documents.
struct EvalSection {
  std::string model, text, context, question, device;
  std::vector<EvalRow> rows;                         ///< ok
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
