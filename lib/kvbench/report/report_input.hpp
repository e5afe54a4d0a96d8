// SPDX-License-Identifier: Apache-2.0
// Rows of CSV files as a report needs them: which table is which, and what of it is shown where.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <kvbench/report/csv_reader.hpp>

namespace kvbench {

enum class TableKind { replay, checks, measures };

/// From the header. Throws Error that names file and column where it is none of them, or lacks a column that is needed.
TableKind kind_of(const CsvTable& table);

/// A row of a replay or sweep over all heads and queries.
struct ReplayRow {
  const CsvTable* table;
  const CsvRow* row;
  std::string method, params, budget, layer, prompt, status, reason;
  bool dense = false;
  double share = NAN;  ///< of the context that the budget means as it is written
  double context_tokens = NAN, budget_tokens = NAN, bytes_share = NAN;
  double error = NAN, error_lo = NAN, error_hi = NAN, recall = NAN;

  bool ok() const { return status == "ok"; }
  const std::string& text(const char* column) const { return table->text(*row, column); }
};

/// Rows that can be compared: of one run, trace, protocol and device (and prompt, where no row is over all prompts).
struct ReplaySection {
  std::string run, trace, sha256, model, protocol, device, isa, prompt, file;  ///< file: only where it tells sections apart
  std::vector<ReplayRow> overall;                                              ///< over all layers
  std::vector<ReplayRow> layers;                                               ///< by layer
  std::vector<ReplayRow> broken;                                               ///< not ok: of any prompt, over layers or not
  std::size_t finer = 0;  ///< rows by head, query or prompt, which are counted only
};

/// In the order of the files. Where two files have the same configuration in the same section, each file gets its own.
std::vector<ReplaySection> replay_sections(std::span<const CsvTable* const> tables);

}  // namespace kvbench
