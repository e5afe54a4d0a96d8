// SPDX-License-Identifier: Apache-2.0
// Axes of a drawing: their range, their ticks, and what lies beyond.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace kvbench {

enum class Scale { linear, log };

struct Tick {
  double value;
  std::string label;  ///< "" = a line without text
};

struct Axis {
  Scale scale = Scale::linear;
  double lo = 0, hi = 1;  ///< lo < hi; log: lo > 0
  std::vector<Tick> ticks;
  std::string title;

  /// 0 at lo, 1 at hi; below 0 or above 1 beyond them, 0 and below for what a log axis cannot show. NaN stays NaN.
  double at(double value) const;
  bool shows(double value) const { return at(value) >= 0 && at(value) <= 1; }
};

/// Multiples by 1, 2 and 5 of powers of ten within [lo, hi]; over more than three decades only the powers have text, over more
/// than eight not all of them. Where that would be two or three ticks, those of linear_ticks().
std::vector<Tick> log_ticks(double lo, double hi);
/// About `count` multiples of 1, 2 or 5 times a power of ten.
std::vector<Tick> linear_ticks(double lo, double hi, int count = 5);

struct Extent {
  double lo, hi;
};

/// What a log axis should span to show most of `values`: the smallest and largest positive finite one within Tukey's fences
/// (1.5 interquartile ranges of the logarithms beyond the quartiles, and at least half a decade), a little more at both ends. A
/// few huge or tiny values so stay outside instead of pressing all others into a line. [0.1, 1] where there is none.
Extent log_extent(std::span<const double> values);

}  // namespace kvbench
