// SPDX-License-Identifier: Apache-2.0
// Claims that something is larger than something else, tested on paired observations.
#pragma once

#include <span>

#include <kvbench/bounds/check.hpp>

namespace kvbench {

/// The mean of differences over units that are taken to be independent of each other (a block of neighbouring queries of a
/// head, a block of tokens). Under "no difference" a unit's sign is a coin toss whatever its size, so that with
/// T = sum / sqrt(sum of squares) Hoeffding bounds P(T >= t) by exp(-t^2 / 2): a p-value that never understates, from a handful
/// of units on, whatever the differences' law.
struct Contrast {
  Index units = 0;
  double mean = NAN, median = NAN;
  Interval interval{NAN, NAN};  ///< 95 %, bootstrap over units
  double p_for = 1;             ///< of the data if the mean were 0 or less
  double p_against = 1;         ///< of the data if it were 0 or more
  std::int64_t positive = 0;    ///< units
};
/// NaN: the unit has no observation and is left out. No resamples: no interval.
Contrast contrast(std::span<const double> differences, int resamples = 1000);

/// A claim that the mean is positive: measured, p-value, and a text that says whether the data support it at 1 %, contradict
/// it, or do not decide. `what` opens the text.
void set_claim(CheckRow& row, const Contrast& contrast, const std::string& what);

}  // namespace kvbench
