// SPDX-License-Identifier: Apache-2.0
// Tables of results for single queries of a replay or single documents of kveval, as values to compare.
#pragma once

#include <map>
#include <memory>
#include <tuple>

#include <kvbench/compare/query_results.hpp>
#include <kvbench/eval/eval_record.hpp>
#include <kvbench/replay/records/record.hpp>
#include <kvbench/replay/records/row.hpp>
#include <kvbench/report/read/rows.hpp>

namespace kvbench::report {

/// What both kinds of tables have in common: their values, held in memory.
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

/// One metric of a CSV of `--rows query`.
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

/// One measure of damage of a table of `kveval --per-document`. Each document is a place with one value, the mean over
/// its scored tokens and the seeds. Rows over documents, rows of layers, and rows of `--inject none`, which has no
/// damage, are not used.
class DocumentResults : public TableResults {
 public:
  /// Throws Error with file, line or column and the remedy where the file is not such a table, has no rows per
  /// document, has a row twice, or a row with status ok lacks a number.
  DocumentResults(std::string path, eval::Damage figure);

 private:
  void add(const CsvTable& table, const CsvRow& line, const eval::EvalRecord& row, eval::Damage figure);
};

/// Whether the file is a CSV with the header of a table of kveval.
bool is_eval_table(const std::string& path);

}  // namespace kvbench::report
