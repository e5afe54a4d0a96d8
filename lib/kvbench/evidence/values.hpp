// SPDX-License-Identifier: Apache-2.0
// What configurations gave on the same observations, in the form that tests take.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include <kvbench/core/statistics.hpp>

namespace kvbench::evidence {

/// Sums of values, and how many values are in each.
struct Cells {
  std::vector<double> sums, counts;
};

/// The array values[configuration][place][unit][seed] of one configuration. A *place* is a layer of a text, with the
/// heads that it has, or a document of an evaluation; a *unit* is a block of neighbouring queries of the text, as far
/// as values are known by query; a *seed* is one set of random draws. Tests need the array only as sums over some of
/// its axes, which are row-major and may be empty where no test takes them. Cells at the same position of two
/// configurations have seen the same observations.
struct Values {
  std::size_t seeds = 1;  ///< 1 beside configurations with several: the value stands for each seed of theirs
  bool drawn = false;     ///< values depend on the seed
  double mean = NAN;      ///< of all values
  Cells places = {};      ///< [texts][layers], or [documents]: over units and seeds
  Cells blocks = {},
        log_blocks = {};  ///< [blocks][seeds]: values, and their logarithms, over the layers and heads of a text
  Cells heads = {}, log_heads = {};  ///< [heads of all places][seeds]: over units; each head has draws of its own
};

/// What places are a sample of.
struct PlaceSample {
  std::size_t layers = 1;                    ///< columns of Values::places
  bool layers_are_units = false;             ///< they can speak for the other layers of the model
  std::size_t model_layers = 0;              ///< number of layers of the model
  std::string_view rows = "texts";           ///< what the rows of Values::places are
  bool is_sample(std::size_t places) const;  ///< whether place_test() has a unit
};

/// How values are compared.
struct Scale {
  bool ratios = true;   ///< by the ratio of their means; otherwise, where values may be negative, by the difference
  bool larger = false;  ///< larger values are better
  double least = 0;     ///< ratios: smaller means count as this one, below which they are rounding

  /// What is averaged over places: the logarithm of a mean, or the mean. NaN for the logarithm of 0, of which no ratio
  /// is known, and for infinite means.
  double of(double mean) const;
  /// The ratio or difference from a mean of differences of of().
  double effect(double x) const { return ratios ? std::exp(x) : x; }
  Interval effect(const Interval& x) const { return {effect(x.lo), effect(x.hi)}; }
  bool better(double a, double b) const { return larger ? a > b : a < b; }
};

}  // namespace kvbench::evidence
