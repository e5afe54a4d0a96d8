// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/drawing/charts.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/report/drawing/labels.hpp>
#include <kvbench/report/drawing/marks.hpp>

namespace kvbench::report {
namespace {

constexpr double dot_row = 18, dot_axis = 240, dot_gap = 12, dot_margin = 14;
constexpr int dot_cross = 6, dot_ring = 3;  // markers of references and of hollow dots
constexpr double legend_line = 18;

class Dots {
 public:
  explicit Dots(const DotPlot& plot) : p_(plot) {
    double names = 0, texts = 0;
    for (const DotRow& row : p_.rows) {
      names = std::max(names, text_width(row.name, 12));
      texts = std::max(texts, text_width(row.text, 11));
    }
    left_ = names + dot_gap;
    right_ = left_ + dot_axis;
    width_ = std::ceil(right_ + dot_gap + 1.1 * texts + 4);  // fonts of pages may be wide
  }

  Drawing drawing() {
    Shapes legend = groups();  // sets top_
    const double base = top_ + dot_row * static_cast<double>(p_.rows.size()) + 4;
    Shapes out = shape::text(0, 15, p_.title, "head") + std::move(legend);
    if (p_.x.at(p_.vague_from) < 1)
      out += shape::rect(x_of(p_.vague_from), top_ - 4, right_ - x_of(p_.vague_from), base - top_ + 4, "vague");
    double free = -INFINITY;  // of labels, from here on
    for (const Tick& tick : p_.x.ticks) {
      const double x = x_of(tick.value), half = text_width(tick.label, 11) / 2;
      out += shape::line(x, top_ - 4, x, base, "grid");
      if (tick.label.empty() || x - half < free) continue;
      free = x + 1.1 * half + 6;
      for (const double y : {top_ - 9, base + 15}) out += shape::text(x, y, tick.label, "soft small", Anchor::middle);
    }
    out += shape::line(left_, base, right_, base, "frame");
    out += shape::text((left_ + right_) / 2, base + 32, p_.x.title, "soft small", Anchor::middle);
    double y = top_ + dot_row / 2;
    for (const DotRow& row : p_.rows) {
      out += row_shape(row, y);
      y += dot_row;
    }
    return {std::move(out), width_, base + 42, false, p_.title, p_.description};
  }

 private:
  double x_of(double value) const {
    return left_ + dot_margin / 2 + (dot_axis - dot_margin) * std::clamp(p_.x.at(value), 0., 1.);
  }

  static std::string colour_of(const DotRow& row) { return row.grey ? "grey" : marks::colour(row.style); }

  /// The legend, in lines below the title.
  Shapes groups() {
    std::vector<const DotRow*> firsts;
    for (const DotRow& row : p_.rows) {
      const auto same = [&](const DotRow* first) { return first->group == row.group; };
      if (!row.group.empty() && std::ranges::none_of(firsts, same)) firsts.push_back(&row);
    }
    Shapes out;
    double x = 5, y = 36;
    for (const DotRow* first : firsts) {
      const double width = 10 + text_width(first->group, 11) + 14;
      if (x > 5 && x + width > width_) x = 5, y += legend_line;
      out += shape::group(colour_of(*first), "", dot(*first, x, y - 4));
      out += shape::text(x + 10, y, first->group, "soft small");
      x += width;
    }
    top_ = (firsts.empty() ? 36 : y + legend_line) + 8;
    return out;
  }

  static Shapes dot(const DotRow& row, double x, double y) {
    return marks::marker(row.grey ? dot_cross : row.hollow ? dot_ring : marks::is_own(row.style) ? row.style : 0, x, y);
  }

  Shape row_shape(const DotRow& row, double y) const {
    Shapes mark;
    if (!std::isnan(row.value)) {
      const double at = p_.x.at(row.value), x = x_of(row.value);
      if (!std::isnan(row.lo) && !std::isnan(row.hi)) mark += shape::line(x_of(row.lo), y, x_of(row.hi), y, "whisker");
      mark += at > 1 ? Shapes(marks::beyond(x, y, 1, 0)) : at < 0 ? marks::beyond(x, y, -1, 0) : dot(row, x, y);
    }
    Shapes content = shape::line(left_, y, right_, y, "guide") + shape::group("point", row.tip, std::move(mark)) +
                     shape::group("name", "", shape::text(0, y + 4, row.name, row.grey ? "soft" : "")) +
                     shape::text(right_ + dot_gap, y + 4, row.text, "soft small");
    return shape::group(colour_of(row), "", std::move(content), row.name);
  }

  const DotPlot& p_;
  double left_, right_, width_, top_ = 0;
};

}  // namespace

Drawing draw(const DotPlot& plot) { return Dots(plot).drawing(); }

}  // namespace kvbench::report
