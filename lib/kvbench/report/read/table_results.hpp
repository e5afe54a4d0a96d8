// SPDX-License-Identifier: Apache-2.0
// Results of a CSV, held in memory: what tables of replay and of kveval have in common.
#pragma once

#include <map>
#include <span>

#include <kvbench/compare/query_results.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

class TableResults : public compare::QueryResults {
 public:
  const std::string& path() const override { return path_; }
  const std::vector<compare::QueryPlace>& places() const override { return places_; }
  const std::vector<compare::QueryConfiguration>& configurations() const override { return configurations_; }
  std::optional<compare::QueryValues> read(std::size_t place, std::size_t configuration) const override;

 protected:
  explicit TableResults(std::string path) : path_(std::move(path)) {}

  /// The number of the row's place, by its text in these columns, and whether it is a new place, to be filled in by the
  /// caller.
  std::pair<std::size_t, bool> place_of(const CsvTable& table, const CsvRow& row, std::span<const char* const> columns);
  /// The number of the row's configuration. Tables without a column `seed` have no seeds.
  std::size_t configuration_of(const CsvTable& table, const CsvRow& row);
  /// Takes one value, with the status and the bytes of its row.
  static void add_value(const CsvTable& table, const CsvRow& row, double value, compare::QueryValues& values);

  std::string path_;
  std::vector<compare::QueryPlace> places_;
  std::vector<compare::QueryConfiguration> configurations_;
  std::map<std::pair<std::size_t, std::size_t>, compare::QueryValues> values_;  ///< by place and configuration

 private:
  std::map<std::vector<std::string>, std::size_t> known_places_, known_configurations_;
};

/// A whole number in a column. Throws Error with file, line and column where it is none.
std::int32_t whole_number(const CsvTable& table, const CsvRow& row, const char* column);

}  // namespace kvbench::report
