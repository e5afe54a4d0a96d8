// SPDX-License-Identifier: Apache-2.0
// Which numbers KVQuant stores apart from the others, and the range of the others. get_outliers_dynamic,
// quant_fn_nuq_recon and SimQuant::quantize in SqueezeAILab/KVQuant quant/kvquant/simquant_module_quantizer.py.
#pragma once

#include <span>

namespace kvbench::methods {

/// Percentiles 0.5 and 99.5: one number in a hundred is an outlier, half of them on each side.
struct OutlierBounds {
  double lower = 0, upper = 0;
};
/// Interpolates linearly between the two nearest numbers, as numpy and torch do. At least one number; they are
/// reordered, with NaN as the largest.
OutlierBounds outlier_bounds(std::span<float> numbers);

/// x rounded to f16.
float in_f16(float x);

/// How the numbers of one token are stored: x as the code of (x - offset) / scale, or as an outlier.
struct ValueRange {
  OutlierBounds bounds;
  float scale = 0, offset = 0;  ///< in f16; numbers that are no outliers are within offset +- scale, but for rounding
  bool outlying(float x) const { return x <= bounds.lower || x >= bounds.upper; }
};
/// The range of the numbers that are no outliers, and of the median of all, which takes the place of the outliers. The
/// median of an even count is the smaller of the two in the middle. At least one number; they are reordered.
ValueRange range_of_token(std::span<float> numbers);

}  // namespace kvbench::methods
