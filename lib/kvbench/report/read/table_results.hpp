// SPDX-License-Identifier: Apache-2.0
// Results of a CSV, held in memory: what tables of replay and of kveval have in common.
#pragma once

#include <map>
#include <tuple>

#include <kvbench/compare/query_results.hpp>
#include <kvbench/replay/records/row.hpp>
#include <kvbench/report/read/row_keys.hpp>

namespace kvbench::report {

class TableResults : public compare::QueryResults {
 public:
  const std::string& path() const override { return path_; }
  const std::vector<compare::QueryPlace>& places() const override { return places_; }
  const std::vector<compare::QueryConfiguration>& configurations() const override { return configurations_; }
  std::optional<compare::QueryValues> read(std::size_t place, std::size_t configuration) const override;

 protected:
  explicit TableResults(std::string path) : path_(std::move(path)) {}

  /// The number of the place, and whether it is a new one, to be filled in by the caller.
  std::pair<std::size_t, bool> place_of(RowKey key);
  std::size_t configuration_of(const replay::RowIdentity& row, bool seeded, std::uint32_t seed);
  /// Takes one value, with the status and the bytes of its row.
  static void add_value(const replay::RowIdentity& row, const replay::Costs& costs, double value,
                        compare::QueryValues& values);

  std::string path_;
  std::vector<compare::QueryPlace> places_;
  std::vector<compare::QueryConfiguration> configurations_;
  std::map<std::pair<std::size_t, std::size_t>, compare::QueryValues> values_;  ///< by place and configuration

 private:
  using Configuration = std::tuple<std::string, std::string, Budget, bool, std::uint32_t>;
  std::map<RowKey, std::size_t> known_places_;
  std::map<Configuration, std::size_t> known_configurations_;
};

}  // namespace kvbench::report
