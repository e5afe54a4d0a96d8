// SPDX-License-Identifier: Apache-2.0
// Results per query from a CSV of `--rows query`, or from any file with such results.
#pragma once

#include <memory>

#include <kvbench/replay/records/record.hpp>
#include <kvbench/report/read/table_results.hpp>

namespace kvbench::report {

/// One metric of a CSV, held in memory.
class QueryCsv : public TableResults {
 public:
  /// Throws Error with file, line or column and the remedy where the file is not such a CSV or has no rows per query.
  QueryCsv(std::string path, std::string_view metric);

 private:
  void check_header(const CsvTable& table) const;
  void add(const CsvTable& table, const CsvRow& line, const replay::Record& row);

  replay::Metric metric_;
};

/// A RawReader for an HDF5 file, a QueryCsv for any other file. Throws what their constructors throw.
std::unique_ptr<compare::QueryResults> open_query_results(const std::string& path, std::string_view metric);

}  // namespace kvbench::report
