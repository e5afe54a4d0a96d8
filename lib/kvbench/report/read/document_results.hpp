// SPDX-License-Identifier: Apache-2.0
// The damage to single documents from a table of `kveval --per-document`.
#pragma once

#include <kvbench/eval/eval_record.hpp>
#include <kvbench/report/read/table_results.hpp>

namespace kvbench::report {

/// One measure of damage of a table. Each document is a place with one value, the mean over its scored tokens and the
/// seeds. Rows over documents, rows of layers, and rows of `--inject none`, which has no damage, are not used.
class DocumentResults : public TableResults {
 public:
  /// Throws Error with file, line or column and the remedy where the file is not such a table, has no rows per
  /// document, has a row twice, or a row with status ok lacks a number.
  DocumentResults(std::string path, eval::Damage figure);

 private:
  void add(const CsvTable& table, const CsvRow& line, const eval::EvalRecord& row, eval::Damage figure);
};

/// Whether the file is a CSV with the header of a table of kveval.
bool is_eval_table(const std::string& path);

}  // namespace kvbench::report
