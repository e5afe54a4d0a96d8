// SPDX-License-Identifier: Apache-2.0
// What the classes of shapes look like: one table for the style sheet of pages and for files.
#pragma once

#include <string>
#include <vector>

#include <kvbench/report/shapes/shape.hpp>

namespace kvbench::report {

/// The part of a page's style sheet that drawings need: the colours for light and dark screens and for paper as
/// variables, which the page uses too, and a rule per look.
std::string looks_css();

struct ShapeStyle {
  std::string fill = "#000000", stroke = "none";  ///< "none" or "#rrggbb", for light screens
  double stroke_width = 1, opacity = 1;
  std::vector<double> dashes;
  double font_size = 12;
  bool bold = false;
};

/// A shape that is no group, and its style inside the groups around it.
struct StyledShape {
  const Shape* shape;
  ShapeStyle style;
};

/// The shapes from back to front, those of groups in their places; valid as long as the drawing. Throws Error for a
/// class that is not in the table.
std::vector<StyledShape> styled_shapes(const Drawing& drawing);

}  // namespace kvbench::report
