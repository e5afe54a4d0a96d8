// SPDX-License-Identifier: Apache-2.0
// Sorts the rows of evaluations (kveval) into the sections of a report.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/eval/eval_record.hpp>
#include <kvbench/report/drawing/marks.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

/// A row of an evaluation, over all layers or of one.
using EvalRow = eval::EvalRecord;

/// The rows of one model, text, form of the documents and settings, and of the same documents of each task.
struct EvalSection {
  std::string model, text, context, question, device;
  double inject_scale = 1;  ///< share of the errors that the model got
  eval::EvalSettings settings;
  std::string documents;        ///< the tasks, each with the digest of its documents: "text 3f2a90c41b7d"
  std::string distinction;      ///< ", " and the layers where not all run, and what tells it from other sections, or ""
  std::vector<EvalRow> rows;    ///< ok
  std::vector<EvalRow> turns;   ///< ok, of one turn of a conversation
  std::vector<EvalRow> broken;  ///< over all documents, not ok
  /// Over all documents; the method compressed fewer layers than it was to run in, and is not compared with others.
  std::vector<EvalRow> fewer_layers;
  OwnStyles own;                            ///< of the report
  std::vector<std::string> tasks, methods;  ///< in order of appearance; methods with their parameters
  std::vector<Budget> budgets;              ///< in order of appearance

  /// Rows over all layers with this task, document ("all", or "": single documents) and injection.
  std::vector<const EvalRow*> find(const std::string& task, const std::string& document,
                                   const std::string& inject) const;
  int style_of(const EvalRow& row) const;  ///< colour and marker of its method in all figures
};

/// Its KL, over tokens.
inline const eval::Estimate& kl_of(const EvalRow& row) { return row.of(eval::damage("kl_mean")); }

/// "all 30 layers", or "layers 0-2 of 30".
std::string layers_text(const eval::EvalSettings& settings);

/// Of equal rows of several files the first counts. Throws Error where a file has a row twice, or a row with status ok
/// lacks a number.
std::vector<EvalSection> eval_sections(std::span<const CsvTable* const> tables);

/// The budget whose share is nearest to a quarter; without rows none.
Budget quarter_of(const EvalSection& section);

}  // namespace kvbench::report
