// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/section.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>

#include <kvbench/core/ordered_map.hpp>
#include <kvbench/core/statistics.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

/// Includes 0.
Axis axis_from_zero(const std::vector<double>& values, const std::string& title) {
  double lo = 0, hi = 0;
  for (const double value : values) {
    if (std::isfinite(value)) lo = std::min(lo, value), hi = std::max(hi, value);
  }
  const double margin = hi > lo ? 0.05 * (hi - lo) : 0.5;
  lo -= lo < 0 ? margin : 0, hi += margin;
  return linear_axis(lo, hi, title);
}

/// One line per method; x, y and the interval of y by functions of a row.
template <class X, class Y>
std::vector<ChartLine> method_lines(const EvalSection& section, const std::vector<const EvalRow*>& rows, X x, Y y) {
  OrderedMap<std::string, ChartLine> lines;
  for (const EvalRow* row : rows) {
    if (row->method == "exact") continue;
    ChartLine& line = lines[row->name()];
    line.name = row->method, line.detail = row->params, line.style = section.style_of(*row);
    if (row->method == "random" || row->method.starts_with("oracle-")) line.role = LineRole::reference;
    ChartPoint point = y(*row);
    point.x = x(*row);
    point.tip = fmt::format("{}, budget {}: {}", row->name(), row->budget, interval_text(point.y, point.lo, point.hi));
    if (std::isfinite(point.x) && !std::isnan(point.y)) line.points.push_back(point);
  }
  std::vector<ChartLine> out;
  for (auto& [name, line] : lines.items()) {
    std::ranges::stable_sort(line.points, {}, &ChartPoint::x);
    if (!line.points.empty()) out.push_back(std::move(line));
  }
  return out;
}

std::vector<double> x_values(const std::vector<ChartLine>& lines) {
  std::vector<double> out;
  for (const ChartLine& line : lines) {
    for (const ChartPoint& point : line.points) out.push_back(point.x);
  }
  return out;
}

std::vector<double> y_values(const std::vector<ChartLine>& lines) {
  std::vector<double> out;
  for (const ChartLine& line : lines) {
    for (const ChartPoint& point : line.points) out.insert(out.end(), {point.y, point.lo, point.hi});
  }
  return out;
}

struct PlottedDamage {
  const char* title;
  eval::Damage figure;
  const char* y_title;
  Scale scale;
  double full = 0;  ///< of the full cache, on a linear scale
};
constexpr PlottedDamage plotted_damage[] = {
    {"KL against bytes held", eval::damage("kl_mean"), "KL(full || compressed), nats", Scale::log},
    {"nll against bytes held", eval::damage("nll_diff"), "nll, difference to the full cache", Scale::linear},
    {"Exact match against bytes held", eval::damage("match_diff"), "exact match, difference to the full cache",
     Scale::linear},
    {"Total variation against bytes held", eval::damage("tv"), "total variation of the next token", Scale::linear},
    {"Sure predictions against bytes held", eval::damage("sure_changed"), "share of the sure predictions that change",
     Scale::linear},
    {"Free answers against bytes held", eval::damage("alike_64"), "share of the first 64 tokens alike", Scale::linear,
     1},
};

/// NaN for what no cache can be, which an axis could not show.
double percent_held(const EvalRow& row) {
  const double percent = 100 * row.held();
  return percent > 1e-6 && percent < 1e9 ? percent : NAN;
}

/// The y of a row, with its interval.
auto point_of(eval::Damage figure) {
  return [figure](const EvalRow& row) {
    const eval::Estimate& value = row.of(figure);
    return ChartPoint{NAN, value.mean, value.lo, value.hi, ""};
  };
}

/// Lines of the methods, x against KL; the axes are left to the caller.
template <class X>
LineChart chart_of_kl(const EvalSection& section, const std::string& task, const std::string& x_name, X x) {
  return {.title = task,
          .description = fmt::format("{} against KL, task {}", x_name, task),
          .lines = method_lines(section, section.find(task, "all", "all"), x, point_of(eval::damage("kl_mean")))};
}

}  // namespace

std::vector<Figure> damage_figures(const EvalSection& section) {
  std::vector<Figure> figures;
  for (const std::string& task : section.tasks) {
    Figure figure{.title = "Damage and cost: " + task,
                  .caption =
                      "Means over documents and seeds, with their 95 % intervals over documents; methods at "
                      "the same cost are drawn side by side. KL is of the next token, on the same tokens with the full "
                      "and the compressed cache. Dashed line: as the full cache."};
    for (const PlottedDamage& kind : plotted_damage) {
      LineChart chart{
          .title = kind.title,
          .description = fmt::format("{}, task {}", kind.title, task),
          .lines = method_lines(section, section.find(task, "all", "all"), percent_held, point_of(kind.figure)),
          .apart = true};
      if (kind.scale == Scale::linear) chart.levels = {kind.full};
      if (chart.lines.empty()) continue;
      const auto [least, most] = std::ranges::minmax(x_values(chart.lines));
      chart.x = percent_axis(least, most, "bytes held / bytes of the full cache");
      const std::vector<double> values = y_values(chart.lines);
      chart.y =
          kind.scale == Scale::log ? log_axis(log_extent(values), kind.y_title) : axis_from_zero(values, kind.y_title);
      figure.drawings.push_back(draw(chart));
    }
    if (!figure.drawings.empty()) figures.push_back(std::move(figure));
  }
  return figures;
}

Figure prediction_figure(const EvalSection& section, const Predictions& predictions) {
  const std::string& metric = predictions.metrics.front().metric;
  Figure figure{.title = "Attention error and damage",
                .caption = fmt::format("One point per configuration, lines join the budgets of a method: {} against "
                                       "KL. If the metric predicted damage, all points would lie on one rising curve.",
                                       metric)};
  for (const std::string& task : section.tasks) {
    const std::vector<const EvalRow*> errors = section.find(task, "all", predictions.errors_of);
    const auto error = [&](const EvalRow& damage) {
      const auto same = std::ranges::find_if(
          errors, [&](const EvalRow* row) { return row->name() == damage.name() && row->budget == damage.budget; });
      return same == errors.end() ? NAN : error_of(**same, metric);
    };
    LineChart chart = chart_of_kl(section, task, metric, error);
    if (chart.lines.empty()) continue;
    const std::vector<double> x = x_values(chart.lines);
    const double least = *std::ranges::min_element(x);  // metrics that are better when higher are negative errors
    chart.x = least > 0 ? log_axis(log_extent(x), metric) : axis_from_zero(x, (least < 0 ? "-" : "") + metric);
    chart.y = log_axis(log_extent(y_values(chart.lines)), "KL, nats");
    figure.drawings.push_back(draw(chart));
  }
  return figure;
}

Figure predicted_figure(const EvalSection& section, const PredictedByName& predicted, const std::string& trace) {
  Figure figure{.title = "Predicted and measured damage"};
  std::vector<double> small;
  for (const std::string& task : section.tasks) {
    const auto prediction = [&](const EvalRow& row) {
      const auto found = predicted.find({row.name(), row.budget});
      return found == predicted.end() ? NAN : found->second;
    };
    LineChart chart = chart_of_kl(section, task, "predicted KL", prediction);
    if (chart.lines.empty()) continue;
    std::vector<double> values;
    for (const ChartLine& line : chart.lines) {
      for (const ChartPoint& point : line.points) {
        values.insert(values.end(), {point.x, point.y, point.lo, point.hi});
        if (point.y > 0 && point.y < replay::largest_predicted) small.push_back(point.x / point.y);
      }
    }
    chart.x = log_axis(log_extent(values), fmt::format("KL predicted from {}, nats", trace));
    chart.y = log_axis(log_extent(values), "KL measured in the model, nats");
    chart.frontier = {{chart.x.lo, chart.x.lo}, {chart.x.hi, chart.x.hi}};
    chart.width = 680, chart.plot_height = 420;
    figure.drawings.push_back(draw(chart));
  }
  figure.caption =
      "One point per configuration, lines join the budgets of a method; bars: the 95 % interval of the measured KL "
      "over documents. Strong line: predicted = measured. Triangles at an edge: values outside the axis.";
  if (!small.empty())
    figure.caption += fmt::format(" Below {} nats, predicted / measured is {} in the median of {} configurations.",
                                  replay::largest_predicted, three_digits(quantile(small, 0.5)), small.size());
  return figure;
}

namespace {

/// With a tick at each of the values, or at every second or third of many.
Axis axis_over(const std::set<Index>& values, Axis axis) {
  constexpr double margin = 1.15, most = 12;
  const auto lo = static_cast<double>(*values.begin()), hi = static_cast<double>(*values.rbegin());
  const double space = std::max(1.0, (hi - lo) / 20);
  const bool is_log = axis.scale == Scale::log;
  axis.lo = is_log ? lo / margin : lo - space, axis.hi = is_log ? hi * margin : hi + space;
  const auto step = static_cast<std::size_t>(std::ceil(static_cast<double>(values.size()) / most));
  for (std::size_t i = 0; const Index value : values)
    if (i++ % step == 0) axis.ticks.push_back({static_cast<double>(value), std::to_string(value)});
  return axis;
}

ChartLine kl_line(const KlCurve& curve, int style) {
  const EvalRow& row = *curve.row;
  ChartLine line{.name = row.method,
                 .detail = row.params + (row.params.empty() ? "" : ", ") + row.budget.text(),
                 .role = row.method == "random" ? LineRole::reference : LineRole::shown,
                 .style = style};
  for (std::size_t i = 0; i < curve.at.size(); ++i) {
    const auto& [kl, lo, hi] = curve.kl[i];
    line.points.push_back({static_cast<double>(curve.at[i]), kl, lo, hi, interval_text(kl, lo, hi)});
  }
  return line;
}

}  // namespace

Figure kl_figure(Figure figure, std::span<const KlCurve> curves, const Axis& x, const EvalSection& section) {
  constexpr double margin = 1.15, reach = 3;  // of an interval that the axis shows: that of two documents spans decades
  if (curves.empty()) return figure;
  OrderedMap<std::string, LineChart> charts;
  std::set<std::string> names;
  bool alone = true;  // a method at one budget has its colour; at several, each line has one
  for (const KlCurve& curve : curves) alone = names.insert(curve.drawing + '\n' + curve.row->name()).second && alone;
  std::set<Index> values;
  double lo = INFINITY, hi = 0;
  for (const KlCurve& curve : curves) {
    LineChart& chart = charts[curve.drawing];
    chart.lines.push_back(
        kl_line(curve, alone ? section.style_of(*curve.row) : static_cast<int>(std::ssize(chart.lines))));
    values.insert(curve.at.begin(), curve.at.end());
    for (const auto& [kl, least, most] : curve.kl)
      lo = std::min(lo, std::fmax(least, kl / reach)), hi = std::max(hi, std::fmin(most, kl * reach));
  }
  for (auto& [title, chart] : charts.items()) {
    chart.title = title, chart.description = "KL against " + x.title, chart.apart = true;
    chart.x = axis_over(values, x), chart.y = log_axis({lo / margin, hi * margin}, "KL(full || compressed), nats");
    figure.drawings.push_back(draw(chart));
  }
  return figure;
}

namespace {

DotRow dot_of(const evidence::Mark& mark, const DamageOf& one, const EvalSection& section) {
  const EvalRow& row = *one.of_texts.front();
  const int own = section.style_of(row);
  const std::string family(methods::family_of(row.method));
  const char* tie = mark.tied == true ? ", not told from the best" : "";
  return {.name = mark.name,
          .group = marks::is_own(own) ? mark.name : family,
          .style = marks::is_own(own) ? own : marks::family_style(family),
          .value = mark.ratio,
          .lo = mark.interval.lo,
          .hi = mark.interval.hi,
          .text = short_number(mark.mean) + (mark.tied == true ? " ~" : ""),
          .tip = fmt::format("{}: KL {}, {} times that of the best{}", mark.name, short_number(mark.mean),
                             interval_text(mark.ratio, mark.interval.lo, mark.interval.hi), tie)};
}

/// The range of the ratios, with those ends of intervals that are within a factor of ten of it: of few documents,
/// intervals over many decades would press all ratios into a point.
Extent extent_of(const std::vector<DotRow>& rows) {
  constexpr double reach = 10;
  std::vector<double> values{1};
  for (const DotRow& row : rows) values.push_back(row.value);
  const auto [lo, hi] = log_extent(values);
  for (const DotRow& row : rows) {
    if (!(row.value >= lo && row.value <= hi)) continue;
    for (const double end : {row.lo, row.hi}) {
      if (std::isfinite(end)) values.push_back(std::clamp(end, lo / reach, hi * reach));
    }
  }
  return log_extent(values);
}

Drawing dots_of(const DamageStanding& at, const EvalSection& section) {
  const EvalRow& row = *at.best().of_texts.front();
  DotPlot plot{.title = fmt::format("KL on the task {} at {}", row.task, budget_words(row.budget)),
               .description = "KL of each method, relative to the best, in ascending order"};
  for (const evidence::Mark* mark : at.standing.ranked())
    plot.rows.push_back(dot_of(*mark, at.all[mark->row], section));
  plot.x = log_axis(extent_of(plot.rows), "KL, times that of the best method");
  return draw(plot);
}

}  // namespace

Figure standing_figure(const TextsTogether& texts) {
  Figure figure{.title = "Where the methods stand: " + texts.scope,
                .caption =
                    "KL relative to that of the best method, with the intervals of the tests against it over the "
                    "documents of all texts, adjusted for the number of methods; right: geometric mean KL in "
                    "nats, ~: not told from the best. An interval that reaches the edge goes on beyond it."};
  figure.alone = fmt::format(
      "{}, {} tokens. Bars: adjusted 95 % intervals; right: geometric mean KL in nats; ~: not told "
      "from the best.",
      texts.scope, texts.sections.front()->context);
  for (const DamageStanding& at : damage_standings(texts.rows()))
    figure.drawings.push_back(dots_of(at, *texts.sections.front()));
  return figure;
}

}  // namespace kvbench::report
