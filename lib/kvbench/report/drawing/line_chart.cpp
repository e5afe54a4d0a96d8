// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/drawing/charts.hpp>

#include <algorithm>

#include <kvbench/report/drawing/labels.hpp>
#include <kvbench/report/drawing/marks.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

constexpr double plot_left = 46, plot_heading = 20, plot_bottom = 44, leader_length = 30, name_height = 15,
                 detail_height = 13;
constexpr int ring = 3, cross = 6;  // markers of beaten lines and hollow points, and of references
constexpr double wide_fonts = 1.1;  // relative to text_width(): the fonts of some pages
constexpr std::size_t detail_characters = 26, many_points = 24;

/// The name of a line at its right end.
struct Label {
  const ChartLine* line;
  std::vector<std::string> details;
  double x = 0, y = 0;  ///< where the line ends
  double height() const { return name_height + detail_height * static_cast<double>(details.size()); }
  double width() const {
    double width = text_width(line->name, 12);
    for (const std::string& detail : details) width = std::max(width, text_width(detail, 11));
    return width;
  }
};

int marker_of(const ChartLine& line) {
  return line.role == LineRole::shown ? line.style : line.role == LineRole::reference ? cross : ring;
}

std::string name_of(const ChartLine& line) { return line.detail.empty() ? line.name : line.name + " " + line.detail; }

bool is_named(LineRole role) { return role != LineRole::context && role != LineRole::crowd; }

bool drawable(const ChartPoint& point) { return !std::isnan(point.x) && !std::isnan(point.y); }

bool has_no_value(const ChartPoint& point) { return point.hollow && std::isinf(point.y); }

/// "▲ 5.41 to 27.4": the values of a line outside the axis; "▲ outside" where a point has none.
std::vector<std::string> beyond_axis(const Axis& y, const ChartLine& line) {
  std::vector<double> below, above;
  for (const ChartPoint& p : line.points) {
    if (!drawable(p)) continue;
    if (y.at(p.y) < 0) below.push_back(p.y);
    if (y.at(p.y) > 1 && !has_no_value(p)) above.push_back(p.y);
  }
  std::vector<std::string> out;
  if (std::ranges::any_of(line.points, has_no_value)) out.emplace_back("▲ outside");
  if (!above.empty()) out.push_back("▲ " + range_text(above));
  if (!below.empty()) out.push_back("▼ " + range_text(below));
  return out;
}

class Plot {
 public:
  explicit Plot(const LineChart& chart) : c_(chart) {
    double widest = 0;
    for (const ChartLine& line : c_.lines) {
      if (!is_named(line.role) || std::ranges::none_of(line.points, drawable)) continue;
      Label label{.line = &line, .details = wrap_params(line.detail, detail_characters)};
      if (line.points.size() <= many_points)
        std::ranges::move(beyond_axis(c_.y, line), std::back_inserter(label.details));
      widest = std::max(widest, label.width());
      labels_.push_back(std::move(label));
    }
    right_ = c_.width - wide_fonts * widest - leader_length - 4;
    top_ = 26 + (c_.title.empty() ? 0 : plot_heading);
    double names = 0;
    for (const Label& label : labels_) names += label.height();
    height_ = std::max(c_.plot_height, names);
    base_ = top_ + height_;
  }

  Drawing drawing() {
    Shapes out = axes();
    if (!c_.frontier.empty()) out += path({.points = c_.frontier}, "frontier");
    for (const bool own : {false, true}) {  // the reader's own methods above all others
      for (const LineRole role :
           {LineRole::context, LineRole::crowd, LineRole::beaten, LineRole::reference, LineRole::shown}) {
        for (const ChartLine& line : c_.lines) {
          if (line.role == role && marks::is_own(line.style) == own) out += line_shape(line);
        }
      }
    }
    out += names();
    return {std::move(out), c_.width, base_ + plot_bottom, false, c_.title, c_.description};
  }

 private:
  double x_of(double value) const { return plot_left + (right_ - plot_left) * std::clamp(c_.x.at(value), 0., 1.); }
  double y_of(double value) const { return base_ - height_ * std::clamp(c_.y.at(value), 0., 1.); }

  /// Horizontal shift of a line, so that intervals at equal x do not overlap.
  double shift(const ChartLine& line) const {
    if (!c_.apart || line.role != LineRole::shown) return 0;
    double rank = 0, count = 0;
    for (const ChartLine& other : c_.lines) {
      if (&other == &line) rank = count;
      count += other.role == LineRole::shown;
    }
    return (rank - (count - 1) / 2) * std::min(3.5, 14 / count);
  }

  Shapes axes() const {
    Shapes out = shape::text(0, top_ - 12, c_.y.title, "soft small");
    if (!c_.title.empty()) out += shape::text(0, 15, c_.title, "head");
    if (c_.y.at(c_.vague_from) < 1)
      out += shape::rect(plot_left, top_, right_ - plot_left, y_of(c_.vague_from) - top_, "vague");
    double free_from = -1e9;  // right end of the previous label
    for (const Tick& tick : c_.x.ticks) {
      const double x = x_of(tick.value), half = text_width(tick.label, 11) / 2;
      out += shape::line(x, top_, x, base_, "grid");
      if (tick.label.empty() || x - half < free_from + 6) continue;
      out += shape::text(x, base_ + 15, tick.label, "soft small", Anchor::middle);
      free_from = x + half;
    }
    for (const Tick& tick : c_.y.ticks) {
      const double y = y_of(tick.value);
      out += shape::line(plot_left, y, right_, y, "grid");
      if (!tick.label.empty()) out += shape::text(plot_left - 6, y + 4, tick.label, "soft small", Anchor::end);
    }
    for (const double level : c_.levels) {
      if (c_.y.shows(level)) out += shape::line(plot_left, y_of(level), right_, y_of(level), "level");
    }
    out +=
        shape::line(plot_left, base_, right_, base_, "frame") + shape::line(plot_left, top_, plot_left, base_, "frame");
    const double middle = std::max((plot_left + right_) / 2, 0.5 * wide_fonts * text_width(c_.x.title, 11));
    return std::move(out) + shape::text(middle, base_ + 34, c_.x.title, "soft small", Anchor::middle);
  }

  /// The points joined by lines, with a gap at points without a value.
  Shape path(const ChartLine& line, const char* classes) const {
    const double dx = shift(line);
    std::vector<Polyline> pieces;
    bool pen_down = false;
    for (const ChartPoint& p : line.points) {
      if (!drawable(p) || (line.role == LineRole::context && !c_.y.shows(p.y))) {
        pen_down = false;
        continue;
      }
      if (!pen_down) pieces.emplace_back();
      pieces.back().points.emplace_back(x_of(p.x) + dx, y_of(p.y));
      pen_down = true;
    }
    return shape::path(std::move(pieces), classes,
                       line.role == LineRole::shown ? marks::dashes(line.style) : std::span<const double>());
  }

  Shapes mark(const ChartLine& line, const ChartPoint& p) const {
    const double x = x_of(p.x) + shift(line), y = y_of(p.y), at = c_.y.at(p.y);
    if (at > 1) return marks::beyond(x, y, 0, -1);
    if (at < 0) return marks::beyond(x, y, 0, 1);
    if (c_.x.at(p.x) > 1) return marks::beyond(x, y, 1, 0);
    if (c_.x.at(p.x) < 0) return marks::beyond(x, y, -1, 0);
    Shapes out;
    if (line.role == LineRole::shown && !std::isnan(p.lo) && !std::isnan(p.hi)) {
      const double lo = y_of(p.lo), hi = y_of(p.hi);
      std::vector<Polyline> bar = {{{{x, lo}, {x, hi}}}};
      if (c_.y.shows(p.lo)) bar.push_back({{{x - 2.5, lo}, {x + 2.5, lo}}});
      if (c_.y.shows(p.hi)) bar.push_back({{{x - 2.5, hi}, {x + 2.5, hi}}});
      out += shape::path(std::move(bar), "whisker");
    }
    return std::move(out) + marks::marker(p.hollow ? ring : marker_of(line), x, y);
  }

  Shape line_shape(const ChartLine& line) const {
    const char* classes = line.role == LineRole::shown       ? "line"
                          : line.role == LineRole::reference ? "reference"
                          : line.tinted                      ? "faint tint"
                                                             : "faint";
    Shapes out = path(line, classes);
    const bool few = line.points.size() <= many_points;
    for (const ChartPoint& p : line.points) {
      if (line.role == LineRole::context || !drawable(p) || (!few && std::isnan(p.lo))) continue;
      out += shape::group("point", p.tip, mark(line, p));
    }
    const char* grey = line.role == LineRole::crowd ? "grey crowd" : "grey";
    return shape::group(line.role == LineRole::shown || line.tinted ? marks::colour(line.style) : grey, "",
                        std::move(out), name_of(line));
  }

  Shapes names() {
    std::vector<LabelSlot> slots;
    for (Label& label : labels_) {
      const auto& points = label.line->points;
      const auto last = std::ranges::find_if(points.rbegin(), points.rend(), drawable);
      label.x = x_of(last->x) + shift(*label.line);
      label.y = y_of(last->y);
      slots.push_back({label.y, label.height()});
    }
    const std::vector<double> centres = spread_labels(slots, top_ - 8, base_ + 8);
    Shapes out;
    for (std::size_t i = 0; i < labels_.size(); ++i) out += name(labels_[i], centres[i]);
    return out;
  }

  /// The name of a line, with a thin connector from the end of the line.
  Shape name(const Label& label, double centre) const {
    const bool shown = label.line->role == LineRole::shown;
    const double first = centre - label.height() / 2 + name_height / 2, x = right_ + leader_length;
    // Level to the edge of the plot, where the lines are in the order of the names: connectors do not cross.
    Shapes lead = shape::path(
        {{{{label.x + 5, label.y}, {std::max(right_, label.x + 5), label.y}, {x - 12, first}}, false}}, "leader");
    lead += marks::marker(marker_of(*label.line), x - 8, first);
    Shapes out = shape::group(shown ? marks::colour(label.line->style) : "grey", "", std::move(lead));
    out += shape::text(x, first + 4, label.line->name, shown ? "" : "soft");
    for (std::size_t k = 0; k < label.details.size(); ++k)
      out += shape::text(x, first + 4 + detail_height * static_cast<double>(k + 1), label.details[k], "soft small");
    return shape::group("name", "", std::move(out), name_of(*label.line));
  }

  const LineChart& c_;
  std::vector<Label> labels_;
  double top_, right_, height_, base_;
};

}  // namespace

Drawing draw(const LineChart& chart) { return Plot(chart).drawing(); }

}  // namespace kvbench::report
