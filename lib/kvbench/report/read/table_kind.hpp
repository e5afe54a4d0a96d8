// SPDX-License-Identifier: Apache-2.0
// The kinds of tables that kvbench writes, told by their columns; claims of a table, and numbers that rows of kveval
// must have.
#pragma once

#include <cstddef>
#include <vector>

#include <kvbench/compare/paper_claim.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

enum class TableKind { replay, checks, measures, claims, evaluations, listing };

/// The kind of a table, from its header. Throws Error with file and column where it is of no kind or lacks a required
/// column.
TableKind kind_of(const CsvTable& table);

/// The tables of a report by kind.
struct ReportTables {
  std::vector<const CsvTable*> replays, checks, measures, claims, evaluations, listings;
  std::vector<const CsvTable*>& of(TableKind kind) {
    std::vector<const CsvTable*>* const all[] = {&replays, &checks, &measures, &claims, &evaluations, &listings};
    return *all[static_cast<std::size_t>(kind)];
  }
};

/// The claims of a table, as far as it holds them. Throws Error with file, line and column.
std::vector<compare::ClaimResult> claims_of(const CsvTable& table);

/// Throws Error with file, line and column where the cell is not a number, or NaN.
void require_number(const CsvTable& table, const CsvRow& row, std::string_view column);
/// The same for every number that a row over all layers with status ok needs.
void require_numbers(const CsvTable& table, const CsvRow& row);

}  // namespace kvbench::report
