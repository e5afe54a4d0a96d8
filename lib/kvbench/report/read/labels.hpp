// SPDX-License-Identifier: Apache-2.0
// Texts by which results show methods, in place of names such as ./mine.py:farmean; a report about some of its methods.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/eval/eval_record.hpp>
#include <kvbench/replay/records/record.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

class Labels {
 public:
  /// Items METHOD=TEXT or METHOD[PARAMS]=TEXT; with PARAMS the text stands for both. Throws Error for other items, and
  /// for two of one text.
  explicit Labels(const std::vector<std::string>& items);

  // Each replaces the names in rows, also where they name the best row, and keeps families (methods::show_as). Throws
  // Error for a label of no row, of a reference, or with the name of another method.
  void apply(std::vector<replay::Record>& rows) const;
  void apply(std::vector<eval::EvalRecord>& rows) const;
  void apply(std::vector<compare::Comparison>& rows) const;
  /// `raw`: the configurations of raw results of the same rows, which are found by these names.
  void apply(std::vector<CsvTable>& tables, std::span<std::vector<compare::QueryConfiguration>* const> raw = {}) const;
  /// The methods of what a run computes, as its rows will show them. Throws as apply() does.
  std::vector<compare::QueryConfiguration> shown(std::span<const replay::MethodChoice> methods) const;
  /// Refuses wrong labels before the run that computes these methods.
  void check(std::span<const replay::MethodChoice> methods) const { shown(methods); }

 private:
  struct Label {
    compare::ConfigurationName of;
    std::string text;
  };
  std::vector<Label> labels_;

  class Renamer;
  template <class Row>
  void apply_to(std::vector<Row>& rows) const;
};

/// Keeps the rows of these methods in the tables of replay, sweep and kveval, and removes those of these tables that
/// have none. A name is METHOD, with all its parameters, or METHOD[PARAMS]. Other tables stay as they are. Throws Error
/// for a name that no row has, with the names of the rows.
void keep_methods(std::vector<CsvTable>& tables, const std::vector<std::string>& names);

}  // namespace kvbench::report
