// SPDX-License-Identifier: Apache-2.0
// Makes a report from CSV files that kvbench wrote.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/report/claims/sections.hpp>
#include <kvbench/report/document/document.hpp>
#include <kvbench/report/read/csv.hpp>
#include <kvbench/report/replay/sections.hpp>
#include <kvbench/rounding/rounding.hpp>

namespace kvbench::report {

/// What rounding the keys of a trace does: its heads, rounding::worst_first().
struct TraceRounding {
  std::string trace;
  std::vector<rounding::HeadRounding> heads;
};

struct ReportOptions {
  std::string title = "kvbench report", description;
  std::vector<Published> published;
  QueryFiles files;
  std::vector<TraceRounding> rounding;
  replay::FigureNumber rank_by{};  ///< of rows of replays; 0: what ranked them there
};

/// Takes tables of replays and sweeps, of checks (`kvbench validate`), of measures and of claims, in any order and
/// number; the kind is recognised from the columns. Columns are found by name, and additional columns are ignored.
/// Throws Error with file, line and column where a table cannot be used.
Document make_report(std::span<const CsvTable> tables, const ReportOptions& options);

}  // namespace kvbench::report
