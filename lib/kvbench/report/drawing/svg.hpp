// SPDX-License-Identifier: Apache-2.0
// Elements of SVG. The classes of report.css set colours, strokes and fonts.
#pragma once

#include <string>

namespace kvbench::report::svg {

/// A coordinate with at most two decimals, which keeps files small and reproducible.
std::string px(double value);

enum class Anchor { start, middle, end };

std::string line(double x1, double y1, double x2, double y2, const std::string& classes);
/// `classes` may be empty.
std::string text(double x, double y, const std::string& content, const std::string& classes,
                 Anchor anchor = Anchor::start);

/// The style of the reader's own method: a colour and a marker that no other style has.
inline constexpr int own_style = -1;

/// The marker of a style, centred at (x, y).
std::string marker(int style, double x, double y);
/// A triangle at an edge for a value outside it, in the direction (dx, dy).
std::string beyond(double x, double y, int dx, int dy);
/// The stroke-dasharray attribute of a style; "": solid.
std::string dashes(int style);
/// The class that sets the colour of a style.
std::string colour(int style);

/// The <svg> element, with a name and a description for screen readers.
std::string element(double width, double height, const std::string& title, const std::string& description,
                    const std::string& content);

/// A <g class=...> element with a tooltip, and with the name of the method that a script can pick out.
std::string group(const std::string& classes, const std::string& tip, const std::string& content,
                  const std::string& method = "");

}  // namespace kvbench::report::svg
