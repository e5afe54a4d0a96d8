// SPDX-License-Identifier: Apache-2.0
// Texts by which results show methods, in place of names such as ./mine.py:farmean.
#pragma once

#include <string>
#include <vector>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/compare/configuration_name.hpp>
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
  void apply(std::vector<compare::Comparison>& rows) const;
  void apply(std::vector<CsvTable>& tables) const;

 private:
  struct Label {
    compare::ConfigurationName of;
    std::string text;
  };
  std::vector<Label> labels_;

  class Renamer;
};

}  // namespace kvbench::report
