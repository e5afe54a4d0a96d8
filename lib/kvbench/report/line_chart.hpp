// SPDX-License-Identifier: Apache-2.0
// Lines with intervals and their names at the end, as one SVG element.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <kvbench/report/axis.hpp>
#include <kvbench/report/document.hpp>

namespace kvbench {

struct ChartPoint {
  double x, y;
  double lo = NAN, hi = NAN;  ///< interval of y
  std::string tip;            ///< shown when pointed at
};

enum class LineRole {
  shown,      ///< colour, markers, interval, name
  reference,  ///< grey and dotted, with its name: something to compare with
  context,    ///< faint, without a name: what stands elsewhere
};

struct ChartLine {
  std::string name, detail;  ///< detail: parameters, in smaller text below the name
  LineRole role = LineRole::shown;
  int style = 0;        ///< colour, marker and dashes; 35 of them
  bool tinted = false;  ///< context: in the colour of its style
  std::vector<ChartPoint> points;
};

struct LineChart {
  std::string title, description;  ///< title: may be empty
  Axis x, y;
  std::vector<ChartLine> lines;
  bool apart = false;  ///< lines have the same x: a hair of sideways shift keeps their intervals apart
  double width = 456;  ///< px
  double plot_height = 250;
};

/// Plot height at which the names fit one below the other.
double height_for_labels(const LineChart& chart);

/// A point beyond the axes, or one that a log axis cannot show, is drawn as a triangle at the edge, and the name of its line
/// says how far it goes.
Drawing draw(const LineChart& chart);

}  // namespace kvbench
