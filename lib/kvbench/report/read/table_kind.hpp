// SPDX-License-Identifier: Apache-2.0
// The kinds of tables that kvbench writes, told by their columns.
#pragma once

#include <cstddef>
#include <vector>

#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

enum class TableKind { replay, checks, measures, claims, evaluations };

/// The kind of a table, from its header. Throws Error with file and column where it is of no kind or lacks a required
/// column.
TableKind kind_of(const CsvTable& table);

/// The tables of a report by kind.
struct ReportTables {
  std::vector<const CsvTable*> replays, checks, measures, claims, evaluations;
  std::vector<const CsvTable*>& of(TableKind kind) {
    std::vector<const CsvTable*>* const all[] = {&replays, &checks, &measures, &claims, &evaluations};
    return *all[static_cast<std::size_t>(kind)];
  }
};

}  // namespace kvbench::report
