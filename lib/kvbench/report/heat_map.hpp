// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kvbench/report/document.hpp>

namespace kvbench {

struct HeatRow {
  std::string name, detail;
  std::vector<double> values;      ///< one a column; NaN: `words` stand there instead
  std::vector<std::string> words;  ///< one a column: why there is no value; "" where there is one
};

struct HeatMap {
  std::string title, description;
  std::vector<std::string> columns;
  std::vector<HeatRow> rows;
  double lo = 0.1, hi = 1;  ///< of the colours, by the logarithm; what lies beyond has the colour of the end
};

/// Numbers stand in the cells as long as there are at most 16 columns, and always where one points.
Drawing draw(const HeatMap& map);

/// Class of colour 0 .. 8 for a value between lo and hi; 'x' for NaN.
char heat_class(double value, double lo, double hi);

}  // namespace kvbench
