// SPDX-License-Identifier: Apache-2.0
// Sorts the rows of CSV files into the sections of a report.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <kvbench/report/csv_reader.hpp>

namespace kvbench {

enum class TableKind { replay, checks, measures, claims };

/// The kind of a table, from its header. Throws Error with file and column where it is of no kind or lacks a required column.
TableKind kind_of(const CsvTable& table);

/// A row of a replay or sweep over all heads and queries.
struct ReplayRow {
  const CsvTable* table;
  const CsvRow* row;
  std::string method, params, budget, layer, prompt, status, reason;
  bool dense = false;
  double share = NAN;  ///< the requested budget as a share of the context, or of the cost of the full cache
  double context_tokens = NAN, budget_tokens = NAN, bytes_share = NAN;
  double error = NAN, error_lo = NAN, error_hi = NAN, recall = NAN;

  bool ok() const { return status == "ok"; }
  const std::string& text(const char* column) const { return table->text(*row, column); }
};

/// Comparable rows: those of one run, trace, protocol, kind of budget and device (and prompt, where no row is over all prompts).
struct ReplaySection {
  std::string run, trace, sha256, model, protocol, device, isa;
  std::string cost;  ///< that the budgets limit: memory, fast memory, bytes read; empty for budgets in tokens
  std::string prompt;
  std::string file;                ///< empty unless needed to distinguish sections
  std::vector<ReplayRow> overall;  ///< over all layers
  std::vector<ReplayRow> layers;   ///< per layer
  std::vector<ReplayRow> broken;   ///< rows that are not ok, of any prompt, per layer and over layers
  std::size_t finer = 0;           ///< number of rows per head, query or prompt, which are not shown
};

/// Sections in the order of the files. Where two files have the same configuration in a section, each file gets its own section.
std::vector<ReplaySection> replay_sections(std::span<const CsvTable* const> tables);

}  // namespace kvbench
