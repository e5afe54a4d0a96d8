// SPDX-License-Identifier: Apache-2.0
// Pieces of SVG. Colours, strokes and fonts come from the classes of html_style().
#pragma once

#include <string>

namespace kvbench::svg {

/// Two decimals at most, none where none is needed: files stay small and equal.
std::string px(double value);

enum class Anchor { start, middle, end };

std::string line(double x1, double y1, double x2, double y2, const std::string& classes);
/// `classes` may be empty.
std::string text(double x, double y, const std::string& content, const std::string& classes, Anchor anchor = Anchor::start);

/// Marker of a style, centred.
std::string marker(int style, double x, double y);
/// Triangle at an edge: what it stands for lies beyond, in the direction (dx, dy).
std::string beyond(double x, double y, int dx, int dy);
/// stroke-dasharray attribute of a style; "" = solid.
std::string dashes(int style);
/// Class that gives a style its colour.
std::string colour(int style);

/// The element itself, with a name and a description for those who do not see it.
std::string element(double width, double height, const std::string& title, const std::string& description,
                    const std::string& content);

/// <g class=... > with a text that is shown when pointed at.
std::string group(const std::string& classes, const std::string& tip, const std::string& content);

}  // namespace kvbench::svg
