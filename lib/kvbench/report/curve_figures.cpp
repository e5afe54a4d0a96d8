// SPDX-License-Identifier: Apache-2.0
// Error against budget and bytes, recall against budget: one drawing, or one per kind of method where there are many methods.
#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>

#include <fmt/format.h>

#include <kvbench/core/budget.hpp>
#include <kvbench/report/dot_plot.hpp>
#include <kvbench/report/line_chart.hpp>
#include <kvbench/report/replay_series.hpp>
#include <kvbench/report/text.hpp>

namespace kvbench {
namespace {

/// The values of a row that a figure shows.
struct CurveKind {
  const char *title, *caption, *y_title;
  bool budget;  ///< x: the budget; otherwise bytes
  bool error;   ///< y: the error with its interval; otherwise recall
  double x(const ReplayRow& r) const { return 100 * (budget ? r.share : r.bytes_share); }
  double y(const ReplayRow& r) const { return error ? r.error : r.recall; }
  double lo(const ReplayRow& r) const { return error ? r.error_lo : NAN; }
  double hi(const ReplayRow& r) const { return error ? r.error_hi : NAN; }
  bool has(const ReplayRow& r) const { return r.ok() && !std::isnan(x(r)) && !std::isnan(y(r)); }
};

constexpr CurveKind curves[] = {
    {"Error against budget",
     "Mean of |z - z*| / |z*| over all queries, heads, layers and seeds; bars: 95 % bootstrap interval of the mean.",
     "mean relative error", true, true},
    {"Error against bytes",
     "The same error against the bytes of the arrays of a kv head, including metadata and slow memory, divided by the bytes of "
     "the "
     "exact cache. A line joins the budgets of a method in ascending order.",
     "mean relative error", false, true},
    {"Recall against budget",
     "Share of the most attended tokens that were kept, over the tokens that a method may drop. Merging methods have no "
     "recall.",
     "mean recall", true, false},
};

const char* explanation(const std::string& kind) {
  if (kind == "eviction") return "eviction: some tokens are kept, the others are dropped";
  if (kind == "sampling") return "sampling: randomly drawn tokens with weights";
  if (kind == "merging") return "merging: tokens merged into weighted entries";
  if (kind == "retrieval") return "retrieval: all tokens are stored, some are read for each query";
  if (kind == "quantisation") return "quantisation: numbers with fewer bits";
  return kind == "own" ? "own: entries read from a file" : "other methods";
}

template <class F>
void each_row(const std::vector<Series>& all, const CurveKind& curve, F use) {
  for (const Series& series : all) {
    for (const ReplayRow* row : series.rows) {
      if (curve.has(*row)) use(series, *row);
    }
  }
}

Axis y_axis(const std::vector<Series>& all, const CurveKind& curve) {
  if (!curve.error) return {Scale::linear, 0, 1, linear_ticks(0, 1), curve.y_title};
  std::vector<double> values;
  each_row(all, curve, [&](const Series& series, const ReplayRow& r) {
    if (series.method == "exact") return;  // its rounding error is decades below all other errors
    for (const double value : {curve.y(r), curve.lo(r), curve.hi(r)}) values.push_back(value);
  });
  const Extent extent = log_extent(values);
  return {Scale::log, extent.lo, extent.hi, log_ticks(extent.lo, extent.hi), curve.y_title};
}

/// Whether the budgets of a section limit a cost; all of them do, or none does.
bool limits_cost(const std::vector<std::string>& budgets) {
  return !budgets.empty() && Budget::parse(budgets[0]).cost().has_value();
}

Axis x_axis(const std::vector<Series>& all, const CurveKind& curve, const std::vector<std::string>& budgets) {
  double lo = INFINITY, hi = 0;
  Axis axis{.scale = Scale::log,
            .ticks = {},
            .title = curve.budget ? "budget (share of the context, or tokens)" : "bytes / bytes of the exact cache"};
  std::vector<std::string> marked;
  each_row(all, curve, [&](const Series&, const ReplayRow& r) {
    const double x = curve.x(r);
    if (!std::isfinite(x) || x <= 0) return;
    lo = std::min(lo, x);
    hi = std::max(hi, x);
    if (curve.budget && std::ranges::find(marked, r.budget) == marked.end()) {
      marked.push_back(r.budget);
      axis.ticks.push_back({x, r.budget});
    }
  });
  if (lo > hi) lo = hi = 100;
  axis.lo = lo / 1.12;
  axis.hi = hi * 1.12;
  std::ranges::stable_sort(axis.ticks, {}, &Tick::value);
  if (!curve.budget) {
    axis.ticks = log_ticks(axis.lo, axis.hi);
    for (Tick& tick : axis.ticks) tick.label += tick.label.empty() ? "" : "%";
  }
  const bool shares = std::ranges::all_of(budgets, [](const std::string& b) { return b.ends_with('%'); });
  const bool tokens = std::ranges::none_of(budgets, [](const std::string& b) { return b.ends_with('%'); });
  if (curve.budget && shares) axis.title = "budget, share of the context";
  if (curve.budget && tokens) axis.title = "budget, tokens per kv head";
  if (curve.budget && limits_cost(budgets)) axis.title = "budget, share of the full cache";
  return axis;
}

std::string tip(const Series& series, const CurveKind& curve, const ReplayRow& r) {
  return fmt::format("{}, budget {}: {} {}, bytes {} of exact", series.name(), r.budget, curve.y_title,
                     interval_text(curve.y(r), curve.lo(r), curve.hi(r)), short_number(r.bytes_share));
}

ChartLine curve_line(const Series& series, const CurveKind& curve, LineRole role) {
  ChartLine line{.name = series.method, .detail = series.params, .role = role, .style = series.style, .points = {}};
  for (const ReplayRow* r : series.rows) {
    ChartPoint point{curve.x(*r), curve.has(*r) ? curve.y(*r) : NAN, curve.lo(*r), curve.hi(*r), ""};
    if (role != LineRole::context) point.tip = tip(series, curve, *r);
    line.points.push_back(std::move(point));
  }
  return line;
}

/// Name of the drawing in which a series is coloured: one drawing for all, one per kind, or one per method where there is one kind.
using Group = std::function<std::string(const Series&)>;
Group grouping(const std::vector<Series>& all) {
  if (!many(all)) return [](const Series&) { return std::string(); };
  std::vector<std::string> kinds;
  for (const Series& s : all) {
    if (!s.reference) add_distinct(kinds, s.kind);
  }
  if (kinds.size() > 1) return [](const Series& s) { return s.kind; };
  return [](const Series& s) { return s.method; };
}

std::vector<Drawing> line_drawings(const std::vector<Series>& all, const CurveKind& curve,
                                   const std::vector<std::string>& budgets) {
  const Group group = grouping(all);
  std::vector<std::string> groups;
  each_row(all, curve, [&](const Series& s, const ReplayRow&) {
    if (!s.reference) add_distinct(groups, group(s));
  });
  if (groups.empty()) groups.emplace_back();
  std::vector<LineChart> charts;
  double height = 0;
  for (const std::string& name : groups) {
    LineChart chart{.title = name.empty()                     ? curve.title
                             : groups.size() > 1 || many(all) ? explanation(name)
                                                              : name,
                    .description = curve.caption,
                    .x = x_axis(all, curve, budgets),
                    .y = y_axis(all, curve),
                    .lines = {},
                    .apart = curve.budget};
    if (std::ranges::any_of(all, [&](const Series& s) { return s.method == name; })) chart.title = name;
    for (const Series& s : all) {
      const bool shown = !s.reference && group(s) == name;
      chart.lines.push_back(curve_line(s, curve,
                                       s.reference ? LineRole::reference
                                       : shown     ? LineRole::shown
                                                   : LineRole::context));
    }
    height = std::max({height, chart.plot_height, height_for_labels(chart)});
    charts.push_back(std::move(chart));
  }
  std::vector<Drawing> drawings;
  for (LineChart& chart : charts) {
    chart.plot_height = height;
    drawings.push_back(draw(chart));
  }
  return drawings;
}

/// For a single budget; the best configuration first.
Drawing dot_drawing(const std::vector<Series>& all, const CurveKind& curve, const std::string& budget) {
  DotPlot plot{.title = fmt::format("{} at a budget of {}", curve.error ? "Error" : "Recall", budget),
               .description = curve.caption,
               .x = y_axis(all, curve),
               .dots = {}};
  each_row(all, curve, [&](const Series& s, const ReplayRow& r) {
    plot.dots.push_back({s.method, s.params, curve.y(r), curve.lo(r), curve.hi(r), s.style, s.reference, tip(s, curve, r)});
  });
  std::ranges::stable_sort(plot.dots,
                           [&](const Dot& a, const Dot& b) { return curve.error ? a.value < b.value : a.value > b.value; });
  return draw(plot);
}

std::string listed(const char* what, const std::vector<std::string>& items) {
  return items.empty() ? "" : fmt::format(" {}{}.", what, fmt::join(items, ", "));
}

/// A sentence with the values outside the axis, by series.
std::string cut_off(const std::vector<Series>& all, const CurveKind& curve) {
  const Axis axis = y_axis(all, curve);
  std::vector<std::string> items;
  for (const Series& series : all) {
    std::vector<double> beyond;
    for (const ReplayRow* r : series.rows) {
      if (curve.has(*r) && !axis.shows(curve.y(*r))) beyond.push_back(curve.y(*r));
    }
    if (!beyond.empty()) items.push_back(fmt::format("{} ({})", series.name(), range_text(beyond)));
  }
  return listed("Values outside the axis, drawn as triangles at its edge: ", items);
}

/// The budget in tokens that most methods have: the median.
double usual_tokens(const std::vector<Series>& all, const std::string& budget) {
  std::vector<double> tokens;
  for (const Series& series : all) {
    for (const ReplayRow* r : series.rows) {
      if (r->budget == budget && r->ok()) tokens.push_back(r->budget_tokens);
    }
  }
  std::ranges::sort(tokens);
  return tokens.empty() ? NAN : tokens[tokens.size() / 2];
}

/// A sentence with the methods whose budget in tokens differs from the usual one, such as those that divide it among layers.
std::string uneven(const std::vector<Series>& all) {
  std::vector<std::string> items;
  for (const Series& series : all) {
    std::vector<double> ratios;
    for (const ReplayRow* r : series.rows) {
      if (r->ok()) ratios.push_back(r->budget_tokens / usual_tokens(all, r->budget));
    }
    if (std::ranges::any_of(ratios, [](double ratio) { return ratio < 0.95 || ratio > 1.05; }))
      items.push_back(fmt::format("{} ({} times)", series.name(), range_text(ratios)));
  }
  return listed(
      "The axis shows the requested budget. On these layers, the following methods have another number of tokens than most: ",
      items);
}

DocTable curve_numbers(const std::vector<Series>& all, std::span<const CurveKind> shown) {
  const bool error = std::ranges::any_of(shown, &CurveKind::error), recall = !std::ranges::all_of(shown, &CurveKind::error);
  std::vector<const char*> columns = {"budget_tokens", "total_bytes", "full_bytes"};
  if (error) columns.insert(columns.end(), {"rel_err_mean", "rel_err_lo", "rel_err_hi"});
  if (recall) columns.push_back("recall_mean");
  DocTable table{.title = "Numbers of this figure",
                 .columns = {{"method"}, {"params"}, {"kind"}, {"budget", true}},
                 .rows = {},
                 .folded = true};
  for (const char* column : columns) table.columns.push_back({column, true});
  for (const Series& series : all) {
    for (const ReplayRow* r : series.rows) {
      std::vector<TableCell> cells = {series.method, series.params, series.kind, r->budget};
      for (const char* column : columns) cells.emplace_back(r->ok() ? r->text(column) : r->status);
      table.rows.push_back(std::move(cells));
    }
  }
  return compact(std::move(table));
}

std::vector<CurveKind> with_points(const std::vector<Series>& all) {
  std::vector<CurveKind> shown;
  for (const CurveKind& curve : curves) {
    bool any = false;
    each_row(all, curve, [&](const Series&, const ReplayRow&) { any = true; });
    if (any) shown.push_back(curve);
  }
  return shown;
}

/// One figure per curve, with one drawing per group.
std::vector<Block> apart(const std::vector<Series>& all, std::span<const CurveKind> shown,
                         const std::vector<std::string>& budgets) {
  std::vector<Block> blocks;
  for (const CurveKind& curve : shown) {
    Figure figure{.title = curve.title,
                  .drawings = line_drawings(all, curve, budgets),
                  .caption = curve.caption,
                  .numbers = curve_numbers(all, {&curve, 1})};
    figure.caption += " Coloured: the methods of the drawing; faint: all other methods; dotted: references.";
    figure.caption += cut_off(all, curve) + (curve.budget && !limits_cost(budgets) ? uneven(all) : "");
    blocks.emplace_back(std::move(figure));
  }
  return blocks;
}

/// One figure with one drawing per curve.
Figure together(const std::vector<Series>& all, std::span<const CurveKind> shown, const std::vector<std::string>& budgets) {
  Figure figure{.title = "Error and recall", .drawings = {}, .caption = "", .numbers = curve_numbers(all, shown)};
  for (const CurveKind& curve : shown) {
    if (curve.budget && budgets.size() == 1) {
      figure.drawings.push_back(dot_drawing(all, curve, budgets[0]));
    } else {
      std::ranges::move(line_drawings(all, curve, budgets), std::back_inserter(figure.drawings));
    }
    figure.caption +=
        fmt::format("{}{}: {}{}", figure.caption.empty() ? "" : " ", curve.title, curve.caption, cut_off(all, curve));
  }
  if (std::ranges::any_of(all, &Series::reference)) figure.caption += " Grey: references.";
  if (!limits_cost(budgets)) figure.caption += uneven(all);
  return figure;
}

}  // namespace

std::vector<Block> curve_figures(const std::vector<Series>& all, const std::vector<std::string>& budgets) {
  std::vector<CurveKind> shown = with_points(all);
  // All methods have the same cost.
  if (limits_cost(budgets)) std::erase_if(shown, [](const CurveKind& curve) { return !curve.budget; });
  if (shown.empty()) return {};
  if (many(all) && budgets.size() > 1) return apart(all, shown, budgets);
  return {together(all, shown, budgets)};
}

}  // namespace kvbench
