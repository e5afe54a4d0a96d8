// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/figures.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/core/ordered_map.hpp>
#include <kvbench/report/drawing/line_chart.hpp>
#include <kvbench/report/eval/prediction.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

Axis log_axis(const std::vector<double>& values, const std::string& title) {
  const Extent extent = log_extent(values);
  return {Scale::log, extent.lo, extent.hi, log_ticks(extent.lo, extent.hi), title};
}

Axis linear_axis(const std::vector<double>& values, const std::string& title) {
  double lo = 0, hi = 0;
  for (const double value : values) {
    if (std::isfinite(value)) lo = std::min(lo, value), hi = std::max(hi, value);
  }
  const double margin = hi > lo ? 0.05 * (hi - lo) : 0.5;
  lo -= lo < 0 ? margin : 0, hi += margin;
  return {Scale::linear, lo, hi, linear_ticks(lo, hi), title};
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
};
constexpr PlottedDamage plotted_damage[] = {
    {"KL against bytes held", eval::damage("kl_mean"), "KL(full || compressed), nats", Scale::log},
    {"nll against bytes held", eval::damage("nll_diff"), "nll, difference to the full cache", Scale::linear},
    {"Exact match against bytes held", eval::damage("match_diff"), "exact match, difference to the full cache",
     Scale::linear},
};

Axis percent_axis(const std::vector<double>& values) {
  const auto [lo, hi] = std::ranges::minmax(values);
  const double margin = std::max(1.12, std::sqrt(4 * lo / hi));  // at least a factor of four
  Axis axis{Scale::log, lo / margin, hi * margin, log_ticks(lo / margin, hi * margin),
            "bytes held / bytes of the full cache"};
  for (Tick& tick : axis.ticks) tick.label += tick.label.empty() ? "" : "%";
  return axis;
}

/// NaN for what no cache can be, which an axis could not show.
double percent_held(const EvalRow& row) {
  const double percent = 100 * row.held();
  return percent > 1e-6 && percent < 1e9 ? percent : NAN;
}

void finish_chart(LineChart& chart, Figure& figure) {
  chart.plot_height = std::max(chart.plot_height, height_for_labels(chart));
  figure.drawings.push_back(draw(chart));
}

}  // namespace

std::vector<Figure> damage_figures(const EvalSection& section) {
  std::vector<Figure> figures;
  for (const std::string& task : section.tasks) {
    Figure figure{.title = "Damage and cost: " + task,
                  .caption =
                      "Means over documents and seeds, with their 95 % bootstrap intervals over documents; methods at "
                      "the same cost are drawn side by side. KL is of the next token, on the same tokens with the full "
                      "and the compressed cache. Dashed line: as the full cache."};
    for (const PlottedDamage& kind : plotted_damage) {
      const auto y = [&](const EvalRow& row) {
        const eval::Estimate& value = row.of(kind.figure);
        return ChartPoint{NAN, value.mean, value.lo, value.hi, ""};
      };
      LineChart chart{.title = kind.title,
                      .description = fmt::format("{}, task {}", kind.title, task),
                      .lines = method_lines(section, section.find(task, "all", "all"), percent_held, y),
                      .apart = true};
      if (kind.scale == Scale::linear) chart.levels = {0};
      if (chart.lines.empty()) continue;
      chart.x = percent_axis(x_values(chart.lines));
      const std::vector<double> values = y_values(chart.lines);
      chart.y = kind.scale == Scale::log ? log_axis(values, kind.y_title) : linear_axis(values, kind.y_title);
      finish_chart(chart, figure);
    }
    if (!figure.drawings.empty()) figures.push_back(std::move(figure));
  }
  return figures;
}

Figure prediction_figure(const EvalSection& section, const std::string& metric) {
  Figure figure{.title = "Attention error and damage",
                .caption = fmt::format("One point per configuration, lines join the budgets of a method: {} against "
                                       "KL. If the metric predicted damage, all points would lie on one rising curve.",
                                       metric)};
  const std::string errors_of = error_injection(section);
  for (const std::string& task : section.tasks) {
    const std::vector<const EvalRow*> errors = section.find(task, "all", errors_of);
    const auto error = [&](const EvalRow& damage) {
      const auto same = std::ranges::find_if(
          errors, [&](const EvalRow* row) { return row->name() == damage.name() && row->budget == damage.budget; });
      return same == errors.end() ? NAN : error_of(**same, metric);
    };
    const auto damage = [](const EvalRow& row) {
      return ChartPoint{NAN, row.of(eval::damage("kl_mean")).mean, row.of(eval::damage("kl_mean")).lo,
                        row.of(eval::damage("kl_mean")).hi, ""};
    };
    LineChart chart{.title = task,
                    .description = fmt::format("{} against KL, task {}", metric, task),
                    .lines = method_lines(section, section.find(task, "all", "all"), error, damage)};
    if (chart.lines.empty()) continue;
    const std::vector<double> x = x_values(chart.lines);
    const double least = *std::ranges::min_element(x);  // metrics that are better when higher are negative errors
    chart.x = least > 0 ? log_axis(x, metric) : linear_axis(x, (least < 0 ? "-" : "") + metric);
    chart.y = log_axis(y_values(chart.lines), "KL, nats");
    finish_chart(chart, figure);
  }
  return figure;
}

}  // namespace kvbench::report
