// SPDX-License-Identifier: Apache-2.0
// Results per query from a CSV of `--rows query`, or from any file with such results.
#pragma once

#include <map>
#include <memory>

#include <kvbench/compare/query_results.hpp>
#include <kvbench/report/csv_reader.hpp>

namespace kvbench {

/// One metric of a CSV, held in memory.
class QueryCsv : public QueryResults {
 public:
  /// Throws Error with file, line or column and the remedy where the file is not such a CSV or has no rows per query.
  QueryCsv(std::string path, std::string_view metric);

  const std::string& path() const override { return path_; }
  const std::vector<QueryPlace>& places() const override { return places_; }
  const std::vector<QueryConfiguration>& configurations() const override { return configurations_; }
  std::optional<QueryValues> read(std::size_t place, std::size_t configuration) const override;

 private:
  void add(const CsvTable& table, const CsvRow& row);
  std::size_t place_of(const CsvTable& table, const CsvRow& row);
  std::size_t configuration_of(const CsvTable& table, const CsvRow& row);

  std::string path_, column_;
  std::vector<QueryPlace> places_;
  std::vector<QueryConfiguration> configurations_;
  std::map<std::vector<std::string>, std::size_t> known_places_, known_configurations_;
  std::map<std::pair<std::size_t, std::size_t>, QueryValues> values_;  // by place and configuration
};

/// A RawReader for an HDF5 file, a QueryCsv for any other file. Throws what their constructors throw.
std::unique_ptr<QueryResults> open_query_results(const std::string& path, std::string_view metric);

}  // namespace kvbench
