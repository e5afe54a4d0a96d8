// SPDX-License-Identifier: Apache-2.0
// One value per row, with its interval: replaces a line chart where there is one budget.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <kvbench/report/axis.hpp>
#include <kvbench/report/document.hpp>

namespace kvbench {

struct Dot {
  std::string name, detail;
  double value, lo = NAN, hi = NAN;
  int style = 0;
  bool reference = false;  ///< grey
  std::string tip;
};

struct DotPlot {
  std::string title, description;
  Axis x;
  std::vector<Dot> dots;  ///< from top to bottom
  double width = 456;
};

Drawing draw(const DotPlot& plot);

}  // namespace kvbench
