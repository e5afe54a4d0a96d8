// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/table.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/compare/texts.hpp>
#include <kvbench/report/replay/answer.hpp>
#include <kvbench/report/replay/ranked_figure.hpp>
#include <kvbench/report/replay/reason_groups.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {

std::string times_best(const replay::Record& r) {
  if (std::isnan(r.ratio_best)) return "-";
  if (r.best == compare::label_of({r.method, r.params, {}})) return "1";
  return fmt::format("{} ({})", short_number(r.ratio_best),
                     short_interval(r.ratio_best_interval.lo, r.ratio_best_interval.hi));
}

namespace {

struct Brief {
  std::string title;
  std::function<std::string(const replay::Record&)> text;
};

std::string interval_of(const replay::Record& r) {
  const replay::Summary& s = r.of(replay::Metric::rel_err);
  if (!s.mean_is_estimable()) return "not estimable";
  return !std::isnan(s.mean) && std::isnan(s.lo) ? "too few queries" : short_interval(s.lo, s.hi);
}

/// The number of a figure, of a prediction with its interval.
std::string with_interval(const replay::RankingFigure& figure, const replay::Record& r) {
  const std::string number = figure_text(figure, r);
  if (!figure.is_prediction() || std::isnan(figure.mean(r)) || !figure.outside(r).empty()) return number;
  const Interval interval = figure.interval(r);
  return fmt::format("{} ({})", number, short_interval(interval.lo, interval.hi));
}

constexpr std::size_t budget_column = 1;

std::vector<Brief> first_columns() {
  return {
      {"method",
       [](const replay::Record& r) {
         return r.params.empty() ? r.method : fmt::format("{} ({})", r.method, r.params);
       }},
      {"budget", [](const replay::Record& r) { return r.budget.text(); }},
      {"kept", [](const replay::Record& r) { return short_number(r.kept_tokens); }},
      {"bytes/full", [](const replay::Record& r) { return short_number(r.bytes.of(CostKind::memory) / r.bytes.full); }},
      {"read/full", [](const replay::Record& r) { return short_number(r.bytes.of(CostKind::read) / r.bytes.full); }},
  };
}

std::vector<Brief> last_columns() {
  return {
      {"geometric", [](const replay::Record& r) { return std::isnan(r.geomean) ? "-" : short_number(r.geomean); }},
      {"times the best", times_best},
      {"median", [](const replay::Record& r) { return short_number(r.of(replay::Metric::rel_err).p50); }},
      {"p99", [](const replay::Record& r) { return short_number(r.of(replay::Metric::rel_err).p99); }},
      {"recall", [](const replay::Record& r) { return short_number(r.of(replay::Metric::recall).mean); }},
      {"mass", [](const replay::Record& r) { return short_number(r.of(replay::Metric::mass_recall).mean); }},
      {"kept mass", [](const replay::Record& r) { return short_number(r.of(replay::Metric::kept_mass).mean); }},
      {"ceiling", [](const replay::Record& r) { return short_number(r.of(replay::Metric::mass_ceiling).mean); }},
  };
}

/// Whether `~` is shown after the error: the row is tied with the best and is not the best itself.
bool has_tie(const replay::Record& r) {
  return r.tied == true && r.best != compare::label_of({r.method, r.params, {}});
}
constexpr const char* tie_note =
    "~ not distinguishable from the best of its budget (Holm at 5 %; columns best, ratio_best, tied)";

/// The columns of a table: errors, and the other figures that rows have.
std::vector<Brief> columns_of(std::span<const replay::Record> records) {
  std::vector<Brief> out = first_columns();
  const auto is_measured = [](const replay::Record& r) { return !std::isnan(r.kl.measured); };
  for (const replay::RankingFigure& figure : replay::ranking_figures) {
    const auto has = [&](const replay::Record& r) { return !std::isnan(figure.mean(r)); };
    const bool is_error = &figure == &replay::figure_of({});
    if (is_error || std::ranges::any_of(records, has))
      out.push_back(
          {std::string(figure.heading()), [&figure](const replay::Record& r) { return with_interval(figure, r); }});
    if (figure.is_prediction() && std::ranges::any_of(records, is_measured))
      out.push_back(
          {"measured KL", [=](const replay::Record& r) { return is_measured(r) ? short_number(r.kl.measured) : "-"; }});
    if (is_error) out.push_back({"95% interval", interval_of});
  }
  std::ranges::move(last_columns(), std::back_inserter(out));
  return out;
}

/// That of the figure which ranks the row.
std::size_t ranked_column(std::span<const Brief> columns, const replay::Record& r) {
  const auto found = std::ranges::find_if(columns, [&](const Brief& c) { return c.title == r.figure().heading(); });
  return static_cast<std::size_t>(found - columns.begin());
}

/// Moves the columns of the test behind that of the figure which was tested.
void move_test(std::vector<Brief>& columns, const replay::Record& r) {
  if (r.figure().is_of_heads()) return;
  const auto at = columns.begin() + static_cast<std::ptrdiff_t>(ranked_column(columns, r)) + 1;
  const auto test = std::ranges::find(columns, std::string_view("geometric"), &Brief::title);
  if (at < test) std::rotate(at, test, test + 2);
}

bool of_several_traces(std::span<const replay::Record> records) {
  return std::ranges::any_of(records, [&](const replay::Record& r) { return r.sha256 != records.front().sha256; });
}

/// The cells of a row that is ok; else its name, budget, status and reason.
std::vector<TableCell> cells_of(const replay::Record& r, std::span<const Brief> columns, bool ties) {
  std::vector<TableCell> cells;
  for (const Brief& column : columns) {
    cells.emplace_back(column.text(r));
    if (cells.size() > budget_column && r.status != replay::Status::ok) {
      cells.emplace_back(fmt::format("{}: {}", name_of(r.status), r.reason));
      break;
    }
  }
  if (ties && r.status == replay::Status::ok) cells[ranked_column(columns, r)].text += has_tie(r) ? '~' : ' ';
  return cells;
}

/// `traces`: rows begin with the trace.
DocTable table_of_records(std::span<const replay::Record> records, bool traces, bool layers) {
  DocTable table;
  const bool ties = std::ranges::any_of(records, has_tie);
  std::vector<Brief> columns = columns_of(records);
  move_test(columns, records.front());
  for (const Brief& column : columns) table.columns.push_back({column.title, !table.columns.empty()});
  if (ties) table.columns[ranked_column(columns, records.front())].title += ' ';
  if (layers) table.columns.insert(table.columns.begin() + 1, {"layer"});
  if (traces) table.columns.insert(table.columns.begin(), {"trace"});
  for (const replay::Record& r : records) {
    std::vector<TableCell> cells = cells_of(r, columns, ties);
    if (layers) cells.insert(cells.begin() + 1, r.layer ? fmt::format("{}", *r.layer) : "all");
    if (traces) cells.insert(cells.begin(), r.trace);
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// The rows that are ok, by trace, budget and error.
std::vector<replay::Record> in_order(std::span<const replay::Record> all) {
  std::vector<replay::Record> shown;
  std::map<std::string, std::size_t> traces;  // numbers in order of appearance
  std::map<Budget, std::size_t> budgets;
  for (const replay::Record& r : all) {
    traces.emplace(r.sha256, traces.size()), budgets.emplace(r.budget, budgets.size());
    if (r.status == replay::Status::ok) shown.push_back(r);
  }
  std::ranges::stable_sort(shown, {}, [&](const replay::Record& r) {
    return std::tuple(traces.at(r.sha256), budgets.at(r.budget), r.is_outside(), error_of(r));
  });
  return shown;
}

}  // namespace

std::vector<replay::Record> rows_over_layers(std::span<const replay::Record> records) {
  std::set<std::string> several;
  for (const replay::Record& r : records) {
    if (r.prompt == "all") several.insert(r.sha256);
  }
  std::vector<replay::Record> shown;
  std::ranges::copy_if(records, std::back_inserter(shown), [&](const replay::Record& r) {
    return !r.layer && (r.prompt == "all" || !several.contains(r.sha256));
  });
  return shown;
}

std::vector<Block> all_rows(std::span<const replay::Record> records) {
  std::vector<Block> blocks = {table_of_records(records, of_several_traces(records), true)};
  if (std::ranges::any_of(records, has_tie)) blocks.emplace_back(Paragraph{tie_note});
  if (const std::string layers = layers_of(rows_over_layers(records)); !layers.empty())
    blocks.emplace_back(Paragraph{layers});
  return blocks;
}

std::vector<Block> rows_by_error(std::span<const replay::Record> records) {
  const std::vector<replay::Record> all = rows_over_layers(records), shown = in_order(all);
  std::vector<Block> blocks;
  if (!shown.empty()) blocks.emplace_back(table_of_records(shown, of_several_traces(all), false));
  if (std::ranges::any_of(shown, has_tie)) blocks.emplace_back(Paragraph{tie_note});
  append_filled(blocks, AnswerBlock{"", reason_sentences(all)});
  return blocks;
}

std::optional<DocTable> averages_over_texts(std::span<const replay::Record> records) {
  DocTable table{.columns = {{"over texts"},
                             {"budget", true},
                             {"texts", true},
                             {"", true},
                             {"95% interval", true},
                             {"mean rank", true},
                             {"wins", true}}};
  for (const compare::TextSummary& t : compare::summarize_texts(records)) {
    if (t.texts < 3) continue;
    table.columns[3].title = figure_of(t.figure).heading();
    table.rows.push_back({compare::label_of({t.method, t.params, {}}), t.budget.text(), fmt::format("{}", t.texts),
                          mark_of(figure_of(t.figure), t.error) + short_number(t.error),
                          short_interval(t.interval.lo, t.interval.hi), short_number(t.mean_rank),
                          fmt::format("{}", t.wins)});
  }
  return table.rows.empty() ? std::nullopt : std::optional(std::move(table));
}

}  // namespace kvbench::report
