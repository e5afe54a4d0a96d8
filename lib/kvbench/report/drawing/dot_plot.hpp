// SPDX-License-Identifier: Apache-2.0
// Values with intervals, one row each.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/drawing/axis.hpp>

namespace kvbench::report {

struct DotRow {
  std::string name;
  std::string group;  ///< in the legend
  int style = 0;      ///< its colour is that of the group; marks::own_style() stands out
  bool grey = false;  ///< a reference: grey cross
  double value = NAN, lo = NAN, hi = NAN;
  std::string text;  ///< the value, at the right
  std::string tip;   ///< tooltip
};

struct DotPlot {
  std::string title, description;
  Axis x;
  std::vector<DotRow> rows;  ///< from top to bottom
};

/// Values outside the axis are triangles at its edge.
Drawing draw(const DotPlot& plot);

}  // namespace kvbench::report
