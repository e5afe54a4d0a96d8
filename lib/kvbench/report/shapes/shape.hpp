// SPDX-License-Identifier: Apache-2.0
// Drawings as shapes, from which pages, SVG files and PDF files are written. Lengths are in px, y points down.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace kvbench::report {

using Point = std::pair<double, double>;

/// Points joined by straight lines.
struct Polyline {
  std::vector<Point> points;
  bool closed = false;
};

/// How SVG spells an outline: `rects` is one path of many rectangles, `path` one of open lines.
enum class OutlineKind { line, polygon, rect, rects, path };
struct Outline {
  OutlineKind kind;
  std::vector<Polyline> lines;
  std::span<const double> dashes = {};  ///< lengths of dashes and gaps; empty: as the classes say
};

struct Circle {
  Point centre;
  double radius;
};

enum class Anchor { start, middle, end };
struct Text {
  Point at;  ///< of the anchor, on the base line
  std::string content;
  Anchor anchor;
};

struct Shape;

/// Shapes from back to front.
struct Shapes {
  std::vector<Shape> list;

  Shapes() = default;
  Shapes(Shape shape);
  Shapes& operator+=(Shapes more);
};
Shapes operator+(Shapes a, Shapes b);

struct Group {
  std::string tip;     ///< tooltip; may be empty
  std::string method;  ///< whose shapes a script can pick out; may be empty
  Shapes shapes;
};

struct Shape {
  std::string classes;  ///< with spaces between; looks.hpp says what they look like
  std::variant<Outline, Circle, Text, Group> form;
};

struct Drawing {
  Shapes shapes;
  double width = 0, height = 0;  ///< natural size
  bool rigid = false;            ///< fixed width; otherwise pages scale the drawing between 4/5 and 6/5
  std::string title;             ///< as drawn; may be empty
  std::string description;       ///< for screen readers
  std::string budgets = "";      ///< those that it draws, in words; "": those of its figure

  const std::string& label() const { return title.empty() ? description : title; }
};

/// Makers of shapes. They round coordinates to two decimals, which keeps files small and reproducible.
namespace shape {

double rounded(double value);
/// A number as files have it, rounded.
std::string px(double value);

Shape line(double x1, double y1, double x2, double y2, std::string classes);
Shape polygon(std::vector<Point> corners, std::string classes);
Shape rect(double x, double y, double width, double height, std::string classes);
/// A rectangle of rects().
Polyline box(double x, double y, double width, double height);
Shape rects(std::vector<Polyline> boxes, std::string classes);
Shape path(std::vector<Polyline> lines, std::string classes, std::span<const double> dashes = {});
Shape circle(double x, double y, double radius, std::string classes);
Shape text(double x, double y, std::string content, std::string classes, Anchor anchor = Anchor::start);
Shape group(std::string classes, std::string tip, Shapes shapes, std::string method = "");

}  // namespace shape

/// The <svg> element of a page, whose style sheet has the classes (looks_css()).
std::string svg_element(const Drawing& drawing);

/// A self-contained SVG file with a light background, whose styles are attributes: it looks the same in programs that
/// know no style sheets.
std::string svg_file(const Drawing& drawing);

/// A PDF file of one page with vector graphics. It embeds the characters that it uses of the font that fontconfig finds
/// for Helvetica; those that the font lacks are empty boxes. The same drawing gives the same bytes on one machine.
std::string pdf_file(const Drawing& drawing);

}  // namespace kvbench::report
