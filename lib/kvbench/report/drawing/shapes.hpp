// SPDX-License-Identifier: Apache-2.0
// A drawing as shapes with their styles, from which files of its own are written.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

struct ShapeStyle {
  std::string fill = "#000000", stroke = "none";  ///< "none" or "#rrggbb"
  double stroke_width = 1, opacity = 1;
  std::vector<double> dashes;
  double font_size = 12;  ///< px
  bool bold = false;
};

/// A part of an outline.
struct Polyline {
  std::vector<std::pair<double, double>> points;
  bool closed = false;
};

struct Shape {
  ShapeStyle style;
  std::vector<Polyline> lines;  ///< of lines, polygons, rectangles and paths
  double x = 0, y = 0;          ///< of circles (the centre) and texts (the base line)
  double radius = 0;            ///< of circles
  std::string text;
  char anchor = 's';  ///< of texts: start, middle or end
};

struct ShapeDrawing {
  double width = 0, height = 0;  ///< px
  std::string title;
  std::vector<Shape> shapes;  ///< from back to front
};

/// The shapes of a drawing of this library (svg.hpp), with the styles of report.css for light screens. Throws Error for
/// other SVG.
ShapeDrawing shapes_of(const Drawing& drawing);

/// A self-contained SVG file with a light background, whose styles are attributes: it looks the same in programs that
/// know no style sheets.
std::string svg_file(const Drawing& drawing);

/// A PDF file of one page, with vector graphics and the standard fonts. Characters that these lack are question marks.
std::string pdf_file(const Drawing& drawing);

}  // namespace kvbench::report
