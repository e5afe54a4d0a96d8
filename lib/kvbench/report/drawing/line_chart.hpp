// SPDX-License-Identifier: Apache-2.0
// Lines with intervals and their names at the end.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/drawing/axis.hpp>

namespace kvbench::report {

struct ChartPoint {
  double x, y;
  double lo = NAN, hi = NAN;  ///< interval of y
  std::string tip = "";       ///< tooltip
};

enum class LineRole {
  shown,      ///< colour, markers, interval, name
  reference,  ///< grey and dotted, crosses, with its name: random, oracle-topk, rows with hindsight
  beaten,     ///< grey, rings, with its name in grey
  crowd,      ///< the same fainter, without a name
  context,    ///< faint, without a name: shown in another drawing
};

struct ChartLine {
  std::string name = "", detail = "";  ///< detail: parameters, in smaller text below the name
  LineRole role = LineRole::shown;
  int style = 0;        ///< selects colour (its remainder by 7), marker and dashes; or marks::own_style()
  bool tinted = false;  ///< role context: faint, but in the colour of the style
  std::vector<ChartPoint> points = {};
};

struct LineChart {
  std::string title = "", description = "";  ///< title: may be empty
  Axis x = {}, y = {};
  std::vector<ChartLine> lines = {};
  std::vector<ChartPoint> frontier = {};  ///< joined by a strong line behind all others
  std::vector<double> levels = {};        ///< values of y that are marked by a line across: 1 where ratios are drawn
  bool apart = false;  ///< lines share their x values: shift them slightly so that intervals do not overlap
  double width = 456;  ///< px
  double plot_height = 250;
};

/// Plot height at which the names of all lines fit below each other.
double height_for_labels(const LineChart& chart);

/// A point outside the axes, or one that a log axis cannot show, is drawn as a triangle at the edge; the label of its
/// line gives the values.
Drawing draw(const LineChart& chart);

}  // namespace kvbench::report
