// SPDX-License-Identifier: Apache-2.0
// Tests a difference over a sample of places: layers of a model that were replayed, and texts. What holds on these
// places need not hold on the others; the variance between places says how far it may be off.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <kvbench/core/statistics.hpp>

namespace kvbench {

struct PlaceTest {
  double mean = NAN;                  ///< over all places
  Interval interval{NAN, NAN};        ///< 95 %, of the mean over layers and texts like these
  double p_value = NAN;               ///< two-sided, of "this mean is 0"
  double error = NAN, degrees = NAN;  ///< standard error of the mean, and its degrees of freedom
  std::size_t layers = 0, texts = 0;  ///< whose variance was used; 0: none

  bool tested() const { return !std::isnan(p_value); }
  /// The interval at another level.
  Interval interval_at(double level) const;
  /// Layers or texts, whichever are fewer.
  std::size_t units() const { return layers == 0 ? texts : texts == 0 ? layers : std::min(layers, texts); }
};

/// The fewest texts whose variance is used; with fewer, a result holds for these texts alone.
inline constexpr std::size_t fewest_texts = 3;

/// "10 of 30 layers and 3 texts", "all 30 layers"; `texts`: what the texts are called, such as documents.
std::string units_of(const PlaceTest& test, std::size_t model_layers, std::string_view texts = "texts");

/// Student's test of the mean of `differences` [texts][layers], row-major. The variance of the mean is V = V_layers +
/// V_texts, with Satterthwaite's degrees of freedom. V_layers is that of the means of layers, where there are several
/// and `layers_are_units`; V_texts that of the means of texts, from three texts on. Not tested (NaN) where neither
/// applies.
PlaceTest place_test(std::span<const double> differences, std::size_t layers, bool layers_are_units);

}  // namespace kvbench
