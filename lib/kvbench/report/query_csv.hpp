// SPDX-License-Identifier: Apache-2.0
// Results by query from the CSV that `--rows query` writes, and from whichever file holds some.
#pragma once

#include <map>
#include <memory>

#include <kvbench/compare/query_results.hpp>
#include <kvbench/report/csv_reader.hpp>

namespace kvbench {

/// One metric of a CSV, in memory.
class QueryCsv : public QueryResults {
 public:
  /// Throws Error naming file, line or column and the remedy where it is no such CSV, or has no rows by query.
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
  std::map<std::pair<std::size_t, std::size_t>, QueryValues> values_;  // place and configuration
};

/// RawReader for an HDF5 file, QueryCsv for any other. Throws Error and IoError as they do.
std::unique_ptr<QueryResults> open_query_results(const std::string& path, std::string_view metric);

}  // namespace kvbench
