// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/figures.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include <fmt/format.h>

#include <kvbench/core/paired_test.hpp>
#include <kvbench/core/statistics.hpp>
#include <kvbench/report/drawing/charts.hpp>
#include <kvbench/report/drawing/marks.hpp>
#include <kvbench/report/replay/series.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

constexpr int coloured_series = 7;
constexpr std::size_t most_texts = 6;

/// Sum and number of the errors by the position of the query.
using ErrorsAlong = std::map<std::int32_t, std::pair<double, double>>;

/// The errors of a series at one budget, of all heads, layers and seeds.
struct QueryErrors {
  const Series* series;
  std::vector<double> values;                ///< sorted
  std::map<std::string, ErrorsAlong> along;  ///< by prompt
};

bool same_rows(const compare::QueryPlace& place, const ReplaySection& section, const ReplayPart& part) {
  return place.sha256 == part.sha256 && place.protocol == section.protocol && place.run == section.run &&
         (part.prompt.empty() || part.prompt == "all" || part.prompt == place.prompt);
}

void add_values(const compare::QueryPlace& place, const compare::QueryValues& values, QueryErrors& out) {
  if (values.status != replay::Status::ok || values.dense) return;
  for (std::size_t i = 0; i < values.values.size(); ++i) {
    const double error = values.values[i];
    if (std::isnan(error)) continue;
    out.values.push_back(error);
    auto& [sum, count] = out.along[place.prompt][place.positions[i]];
    sum += error, count += 1;
  }
}

/// One element per series that has errors at the budget. Of a configuration in several files the first counts.
std::vector<QueryErrors> errors_at(const Budget& budget, const ReplaySection& section, const ReplayPart& part,
                                   const std::vector<Series>& all,
                                   std::span<const compare::QueryResults* const> files) {
  std::vector<QueryErrors> out;
  for (const Series& series : all) {
    QueryErrors errors{.series = &series};
    for (const compare::QueryResults* file : files) {
      if (!errors.values.empty()) break;
      for (std::size_t c = 0; c < file->configurations().size(); ++c) {
        const compare::QueryConfiguration& one = file->configurations()[c];
        if (one.method != series.method || one.params != series.params || one.budget != budget) continue;
        for (std::size_t p = 0; p < file->places().size(); ++p) {
          if (!same_rows(file->places()[p], section, part)) continue;
          if (const auto values = file->read(p, c)) add_values(file->places()[p], *values, errors);
        }
      }
    }
    std::ranges::sort(errors.values);
    if (!errors.values.empty() && series.method != "exact") out.push_back(std::move(errors));
  }
  return out;
}

ChartLine line_of(const Series& series) {
  const bool shown = series.rank < coloured_series || marks::is_own(series.style);
  const LineRole role = series.reference ? LineRole::reference : shown ? LineRole::shown : LineRole::context;
  return {.name = series.method, .detail = series.params, .role = role, .style = series.style};
}

/// An error that as many in a thousand of the sorted values do not exceed.
double quantile_of(const std::vector<double>& sorted, int thousandths) {
  const double at = thousandths / 1000. * static_cast<double>(sorted.size() - 1);
  return sorted[static_cast<std::size_t>(std::lround(at))];
}

Drawing finished(LineChart chart) {
  std::vector<double> values;
  for (const ChartLine& line : chart.lines) {
    for (const ChartPoint& point : line.points) values.push_back(point.y);
  }
  chart.y = log_axis(log_extent(values), "relative error of a query");
  return draw(chart);
}

Drawing distribution(const std::vector<QueryErrors>& all) {
  LineChart chart{.title = "Distribution of the errors",
                  .description = "Share of the queries whose error is at most the value of the line",
                  .x = linear_axis(0, 100, "share of the queries with at most this error, %"),
                  .width = 450,
                  .plot_height = 300};
  for (const QueryErrors& errors : all) {
    chart.lines.push_back(line_of(*errors.series));
    for (int k = 1; k <= 99; ++k)
      chart.lines.back().points.push_back({static_cast<double>(k), quantile_of(errors.values, 10 * k), NAN, NAN, ""});
  }
  return finished(std::move(chart));
}

/// Means over blocks of neighbouring queries of one prompt.
Drawing course(const std::vector<QueryErrors>& all, const std::string& prompt, const std::string& title) {
  double first = INFINITY, last = 0;
  std::vector<ChartLine> lines;
  for (const QueryErrors& errors : all) {
    const auto along = errors.along.find(prompt);
    if (along == errors.along.end()) continue;
    lines.push_back(line_of(*errors.series));
    double sum = 0, count = 0, position = 0;
    std::int64_t queries = 0;
    for (auto at = along->second.begin(); at != along->second.end();) {
      sum += at->second.first, count += at->second.second, position += at->first;
      const bool end = ++at == along->second.end();
      if (++queries < queries_per_block && !end) continue;
      lines.back().points.push_back({position / static_cast<double>(queries), sum / count, NAN, NAN, ""});
      first = std::min(first, lines.back().points.back().x), last = std::max(last, lines.back().points.back().x);
      sum = count = position = 0, queries = 0;
    }
  }
  if (!(first < last)) first -= 0.5, last = first + 1;
  return finished({.title = title,
                   .description = "Mean error of neighbouring queries against their position",
                   .x = linear_axis(first, last, "position of the query"),
                   .lines = std::move(lines),
                   .width = 450,
                   .plot_height = 300});
}

/// One drawing per prompt.
std::vector<Drawing> courses(const std::vector<QueryErrors>& all) {
  DistinctTexts prompts;
  for (const QueryErrors& errors : all) {
    for (const auto& [prompt, along] : errors.along) prompts.add(prompt);
  }
  std::vector<Drawing> out;
  for (const std::string& prompt : prompts.list()) {
    const std::string title = prompts.list().size() == 1 ? "" : fmt::format(", prompt {}", prompt);
    if (out.size() < most_texts) out.push_back(course(all, prompt, "Error along the text" + title));
  }
  return out;
}

DocTable quantile_table(const std::vector<QueryErrors>& all) {
  DocTable table{.title = "Quantiles of the errors", .columns = {{"method"}, {"queries", true}}};
  constexpr int shown[] = {100, 250, 500, 750, 900, 990, 1000};
  for (const int q : shown) table.columns.push_back({q == 1000 ? "largest" : fmt::format("{} %", q / 10), true});
  for (const QueryErrors& errors : all) {
    std::vector<TableCell> cells = {errors.series->name(), fmt::format("{}", errors.values.size())};
    for (const int q : shown) cells.emplace_back(three_digits(quantile_of(errors.values, q)));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace

std::vector<Block> query_figures(const ReplaySection& section, const ReplayPart& part, const std::vector<Series>& all,
                                 std::span<const compare::QueryResults* const> files) {
  std::vector<Block> blocks;
  for (const Budget& budget : main_budgets(budgets_of(part))) {
    const std::vector<QueryErrors> errors = errors_at(budget, section, part, all, files);
    if (errors.empty()) continue;
    Figure figure{
        .title = "Errors of single queries at " + budget.text(),
        .drawings = {distribution(errors)},
        .caption = fmt::format(
            "Distribution: of all queries, heads, layers and seeds; the axis of errors is vertical, so that a lower "
            "line is better. Along the text: means over {} neighbouring queries{}. Faint lines without a name: all "
            "further methods.",
            queries_per_block, errors.front().along.size() > most_texts ? "; the first prompts" : ""),
        .numbers = quantile_table(errors)};
    std::ranges::move(courses(errors), std::back_inserter(figure.drawings));
    blocks.emplace_back(std::move(figure));
  }
  return blocks;
}

}  // namespace kvbench::report
