// SPDX-License-Identifier: Apache-2.0
// The exact attention of one query head, and below it the tokens that methods keep.
#pragma once

#include <string>
#include <vector>

#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// The tokens that one method keeps, by columns of the map.
struct KeptStrip {
  std::string name;
  std::vector<double> shares;  ///< [columns] share of the tokens of a column that are kept, mean over the queries
};

struct AttentionMap {
  std::string title, description;
  /// [rows][columns] attention on the tokens of a column, mean over the queries of a row
  std::vector<std::vector<double>> mass = {};
  std::vector<KeptStrip> kept = {};
  double tokens = 0;  ///< of all columns
};

/// Colours of the attention are logarithmic, those of the strips linear.
Drawing draw(const AttentionMap& map);

}  // namespace kvbench::report
