// SPDX-License-Identifier: Apache-2.0
// Markers, dashes and colours by which methods are told apart.
#pragma once

#include <kvbench/report/shapes/shape.hpp>

namespace kvbench::report::marks {

/// The style of the reader's own method: a colour and a marker that no other style has.
inline constexpr int own_style = -1;

/// The marker of a style, centred at (x, y).
Shapes marker(int style, double x, double y);
/// A triangle at an edge for a value outside it, in the direction (dx, dy).
Shape beyond(double x, double y, int dx, int dy);
/// The dashes and gaps of a style; empty: solid.
std::span<const double> dashes(int style);
/// The class that sets the colour of a style.
std::string colour(int style);

}  // namespace kvbench::report::marks
