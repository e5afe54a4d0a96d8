// SPDX-License-Identifier: Apache-2.0
// Axes of a drawing: range, ticks, and values outside the range.
#pragma once

#include <span>
#include <string>
#include <vector>

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

}  // namespace kvbench::report
