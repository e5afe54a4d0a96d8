// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

struct HeatRow {
  std::string name, detail = "";
  std::vector<double> values = {};      ///< one per column; NaN: `words` is shown instead
  std::vector<std::string> words = {};  ///< one per column: why there is no value; "" where there is one
};

struct HeatMap {
  std::string title, description;
  std::vector<std::string> columns = {};
  std::string column_title = "layer";
  std::vector<HeatRow> rows = {};
  double lo = 0.1, hi = 1;  ///< range of the logarithmic colour scale; values outside have the colour of its end
};

/// The cells show their numbers where there are at most 16 columns; the tooltips always do.
Drawing draw(const HeatMap& map);

/// Colour class '0' .. '8' of a value on the scale from lo to hi; 'x' for NaN.
char heat_class(double value, double lo, double hi);

}  // namespace kvbench::report
