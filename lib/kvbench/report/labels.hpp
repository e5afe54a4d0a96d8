// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace kvbench {

struct LabelSlot {
  double wanted;  ///< centre
  double height;
};

/// Centres for labels in a column so that none overlaps another, in the order of `wanted` (ties: of the list), as near to what
/// they want as sums of squares go, within [top, bottom] where all fit; where they do not, from `top` on and beyond.
std::vector<double> spread_labels(std::span<const LabelSlot> slots, double top, double bottom);

/// Estimated width of a text in a sans-serif font of `size` px: close enough to leave room for it.
double text_width(const std::string& text, double size);

/// "a=1;b=2;c=3" in lines of at most `width` characters, broken after semicolons where that is possible.
std::vector<std::string> wrap_params(const std::string& params, std::size_t width);

}  // namespace kvbench
