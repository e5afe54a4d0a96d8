// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/figures.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/format.h>

#include <kvbench/report/replay/answer.hpp>
#include <kvbench/report/replay/ranked_figure.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

/// The row with an error at a budget, or null.
const ReplayRow* row_at(const Series& series, const Budget& budget) {
  const auto at = std::ranges::find_if(
      series.rows, [&](const ReplayRow* r) { return r->budget == budget && r->ok() && !std::isnan(r->error); });
  return at == series.rows.end() ? nullptr : *at;
}

/// The rows of a budget that are ranked: what is bold among them, and whether there was a test.
struct RankedRows {
  double lowest = INFINITY;
  std::size_t count = 0, tested = 0;

  RankedRows(const std::vector<const Series*>& all, const Budget& budget) {
    for (const Series* series : all) {
      const ReplayRow* r = row_at(*series, budget);
      if (series->reference || r == nullptr || r->is_outside()) continue;
      lowest = std::min(lowest, error_of(*r));
      ++count, tested += r->tied.has_value();
    }
  }

  /// `geometric`: the number is the mean by which rows are ranked and tested.
  TableCell cell(const Series& series, const ReplayRow& r, bool geometric) const {
    const double mean = geometric ? r.geomean : r.error;
    const std::string text = std::isnan(mean) ? "–" : mark_of(r) + three_digits(mean);
    if (series.reference) return {text, Tone::dim};
    if (r.is_outside()) return {"outside", Tone::dim};
    if (tested < 2) return text;  // the best alone has no test
    if (error_of(r) == lowest) return {text, Tone::best};
    if (!r.tied) return text + "?";
    return {text, *r.tied ? Tone::tied : Tone::plain};
  }
};

/// Whether all rows that are ranked have geometric means: a table has one kind.
bool are_geometric(const std::vector<const Series*>& all) {
  for (const Series* series : all) {
    const auto lacks = [](const ReplayRow* r) {
      return r->ok() && !r->is_outside() && !std::isnan(r->error) && std::isnan(r->geomean);
    };
    if (!series->reference && std::ranges::any_of(series->rows, lacks)) return false;
  }
  return true;
}

DocTable table_of(const replay::RankingFigure& figure, const std::string& part, bool geometric) {
  const std::string what =
      geometric ? fmt::format("Geometric mean of the {}", figure.quantity) : figure.average_title();
  return {
      .title = fmt::format(
          "{} by method and budget{}. Bold: the best of a budget; underlined: not distinguishable from it", what, part),
      .columns = {{"method"}},
      .paper = true};
}

}  // namespace

DocTable budget_table(const std::vector<Series>& all, const std::vector<Budget>& budgets, const std::string& part) {
  const std::vector<Budget> first = main_budgets(budgets);
  std::vector<const Series*> order;
  for (const Series& series : all) {
    if (std::ranges::any_of(budgets, [&](const Budget& b) { return row_at(series, b) != nullptr; }))
      order.push_back(&series);
  }
  if (order.size() < 2) return {};
  std::ranges::stable_sort(order, {}, [&](const Series* series) {
    const ReplayRow* r = row_at(*series, first.front());
    return std::tuple(series->reference, r != nullptr && r->is_outside(), r == nullptr ? INFINITY : error_of(*r));
  });
  const bool geometric = are_geometric(order);
  DocTable table = table_of(figure_of(all), part, geometric);
  // Their numbers may be less than the best, without being ranked.
  for (const Series* series : order) table.rows.push_back({series->name() + (series->reference ? " (reference)" : "")});
  bool untested = false;
  for (const Budget& budget : budgets) {
    const RankedRows ranked(order, budget);
    untested |= ranked.tested < 2 && ranked.tested < ranked.count;
    table.columns.push_back({budget.text(), true});
    for (std::size_t i = 0; i < order.size(); ++i) {
      const ReplayRow* r = row_at(*order[i], budget);
      table.rows[i].push_back(r == nullptr ? TableCell("–", Tone::dim) : ranked.cell(*order[i], *r, geometric));
    }
  }
  if (untested) table.title += "; without marks: not tested";
  if (std::ranges::any_of(order, &Series::reference)) table.title += "; reference: not ranked";
  return table;
}

}  // namespace kvbench::report
