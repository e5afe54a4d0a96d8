// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/report/shapes/shape.hpp>

namespace kvbench::report {

struct LabelSlot {
  double preferred;  ///< centre
  double height;
};

/// Centres of labels in a column without overlaps, in the order of `preferred` (ties: in list order), with the smallest
/// sum of squared distances to the preferred centres. Labels stay within [top, bottom] if all fit; otherwise they start
/// at `top` and exceed `bottom`.
std::vector<double> spread_labels(std::span<const LabelSlot> slots, double top, double bottom);

/// Estimated width of a text in a sans-serif font of `size` px.
double text_width(const std::string& text, double size);

/// Splits "a=1;b=2;c=3" after semicolons into lines of at most `width` characters where possible.
std::vector<std::string> wrap_params(const std::string& params, std::size_t width);

/// The drawing with a text below it, in lines of at most its width: for files of it alone.
Drawing with_text_below(Drawing drawing, const std::string& text);

}  // namespace kvbench::report
