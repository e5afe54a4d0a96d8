// SPDX-License-Identifier: Apache-2.0
// Drawings of results: lines with intervals and their names at the end; values with intervals, one row each; coloured
// cells; the exact attention of one query head, and below it the tokens that methods keep. Their axes: range, ticks,
// and values outside the range.
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

enum class Scale { linear, log };

struct Tick {
  double value;
  std::string label;  ///< "": a grid line without text
};

struct Axis {
  Scale scale = Scale::linear;
  double lo = 0, hi = 1;  ///< lo < hi; log: lo > 0
  std::vector<Tick> ticks = {};
  std::string title = "";

  /// Position on the axis: 0 at lo, 1 at hi, outside [0, 1] for values outside [lo, hi]. -infinity for values <= 0 on a
  /// log axis. NaN for NaN.
  double at(double value) const;
  bool shows(double value) const { return at(value) >= 0 && at(value) <= 1; }
};

struct Extent {
  double lo, hi;
};

/// 1, 2 and 5 times the powers of ten within [lo, hi]. Over more than three decades only the powers of ten have labels,
/// over more than eight decades only some of them. Over less than 0.7 decades: linear_ticks().
std::vector<Tick> log_ticks(double lo, double hi);
/// About `count` multiples of a step, which is 1, 2 or 5 times a power of ten.
std::vector<Tick> linear_ticks(double lo, double hi, int count = 5);

/// Range of a log axis that shows most of `values`: from the smallest to the largest positive finite value within
/// Tukey's fences (1.5 interquartile ranges of the logarithms beyond the quartiles, and at least half a decade), plus a
/// margin at both ends; always within [1e-307, 1e307]. Without the fences, a few huge or tiny values would compress all
/// others into a line. [0.1, 1] where no value is positive and finite.
Extent log_extent(std::span<const double> values);

// Axes with their ticks.
Axis linear_axis(double lo, double hi, std::string title);
Axis log_axis(Extent extent, std::string title);
/// The part of the full cache in percent, from least to most with a margin: at least a factor of four, so that costs
/// that are nearly equal look so.
Axis percent_axis(double least, double most, std::string title);

struct ChartPoint {
  double x, y;
  double lo = NAN, hi = NAN;  ///< interval of y
  std::string tip = "";       ///< tooltip
  bool hollow = false;        ///< its value does not say how large what it stands for is
};

enum class LineRole {
  shown,      ///< colour, markers, interval, name
  reference,  ///< grey and dotted, crosses, with its name: random, oracle-topk, rows calibrated on themselves
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
  double vague_from = NAN;   ///< values of y from here on do not say how large what they stand for is: a grey area
  bool apart = false;        ///< lines share their x values: shift them slightly so that intervals do not overlap
  double width = 456;        ///< px
  double plot_height = 250;  ///< at least; more where the names of the lines need it to stand below each other
};

/// A point outside the axes, or one that a log axis cannot show, is drawn as a triangle at the edge; the label of its
/// line gives the values.
Drawing draw(const LineChart& chart);

struct DotRow {
  std::string name;
  std::string group;    ///< in the legend
  int style = 0;        ///< its colour is that of the group; marks::own_style() stands out
  bool grey = false;    ///< a reference: grey cross
  bool hollow = false;  ///< its value does not say how large what it stands for is
  double value = NAN, lo = NAN, hi = NAN;
  std::string text;  ///< the value, at the right
  std::string tip;   ///< tooltip
};

struct DotPlot {
  std::string title, description;
  Axis x;
  double vague_from = NAN;        ///< as LineChart::vague_from, of x
  std::vector<DotRow> rows = {};  ///< from top to bottom
};

/// Values outside the axis are triangles at its edge.
Drawing draw(const DotPlot& plot);

struct HeatRow {
  std::string name, detail = "";
  std::vector<double> values = {};      ///< one per column; NaN: `words` is shown instead
  std::vector<std::string> words = {};  ///< one per column: why there is no value; "" where there is one
  std::vector<std::string> marks = {};  ///< one per column: what a cell without a value shows; "": a dash
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
