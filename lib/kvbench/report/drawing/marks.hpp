// SPDX-License-Identifier: Apache-2.0
// Markers, dashes and colours by which methods are told apart.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <kvbench/report/shapes/shape.hpp>

namespace kvbench::report {

/// The styles of the reader's own methods in all figures of a report, by name with parameters ("./mine.py:Mine a=1").
using OwnStyles = std::map<std::string, int>;

namespace marks {

/// Styles from 0 on are those of the registry's methods. The reader's own methods have negative ones, with colours and
/// markers that no other style has: the twenty from own_style(0) to own_style(19) differ.
constexpr int own_style(int number) { return -1 - number; }
constexpr bool is_own(int style) { return style < 0; }

/// The first style whose colour is that of a family of methods ("eviction", "composition", ...), where methods of one
/// family share it.
int family_style(std::string_view family);

/// The marker of a style, centred at (x, y).
Shapes marker(int style, double x, double y);
/// A triangle at an edge for a value outside it, in the direction (dx, dy).
Shape beyond(double x, double y, int dx, int dy);
/// The dashes and gaps of a style; empty: solid.
std::span<const double> dashes(int style);
/// The classes that set the colour of a style.
std::string colour(int style);

}  // namespace marks
}  // namespace kvbench::report
