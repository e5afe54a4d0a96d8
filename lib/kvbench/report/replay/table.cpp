// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/table.hpp>

#include <algorithm>
#include <cmath>
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

using Brief = RowColumn<replay::Record>;

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

auto mean_of(replay::Metric metric) {
  return [metric](const replay::Record& r) { return short_number(r.of(metric).mean); };
}

std::vector<Brief> first_columns() {
  return {{{"method"},
           [](const replay::Record& r) {
             return r.params.empty() ? r.method : fmt::format("{} ({})", r.method, r.params);
           }},
          {{"budget", true}, &replay::Record::budget},
          {{"kept", true}, [](const replay::Record& r) { return short_number(r.kept_tokens); }},
          {{"bytes/full", true}, [](const replay::Record& r) { return short_number(r.held()); }},
          {{"read/full", true}, [](const replay::Record& r) { return short_number(r.read()); }}};
}

std::vector<Brief> last_columns() {
  return {{{"geometric", true}, [](const replay::Record& r) { return short_number(r.geomean); }},
          {{"times the best", true}, times_best},
          {{"median", true}, [](const replay::Record& r) { return short_number(r.of(replay::Metric::rel_err).p50); }},
          {{"p99", true}, [](const replay::Record& r) { return short_number(r.of(replay::Metric::rel_err).p99); }},
          {{"recall", true}, mean_of(replay::Metric::recall)},
          {{"mass", true}, mean_of(replay::Metric::mass_recall)},
          {{"kept mass", true}, mean_of(replay::Metric::kept_mass)},
          {{"ceiling", true}, mean_of(replay::Metric::mass_ceiling)}};
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
      out.push_back({{std::string(figure.heading()), true},
                     [&figure](const replay::Record& r) { return with_interval(figure, r); }});
    if (figure.is_prediction() && std::ranges::any_of(records, is_measured))
      out.push_back({{"measured KL", true}, [](const replay::Record& r) { return short_number(r.kl.measured); }});
    if (is_error) out.push_back({{"95% interval", true}, interval_of});
  }
  std::ranges::move(last_columns(), std::back_inserter(out));
  return out;
}

/// That of the figure which ranks the row.
std::size_t ranked_column(std::span<const Brief> columns, const replay::Record& r) {
  const auto found =
      std::ranges::find_if(columns, [&](const Brief& c) { return c.head.title == r.figure().heading(); });
  return static_cast<std::size_t>(found - columns.begin());
}

/// Moves the columns of the test behind that of the figure which was tested.
void move_test(std::vector<Brief>& columns, const replay::Record& r) {
  if (r.figure().is_of_heads()) return;
  const auto at = columns.begin() + static_cast<std::ptrdiff_t>(ranked_column(columns, r)) + 1;
  const auto test = std::ranges::find(columns, "geometric", [](const Brief& c) { return c.head.title; });
  if (at < test) std::rotate(at, test, test + 2);
}

bool of_several_traces(std::span<const replay::Record> records) {
  return std::ranges::any_of(records, [&](const replay::Record& r) { return r.sha256 != records.front().sha256; });
}

/// `traces`: rows begin with the trace. Of a row that is not ok: its names, its budget and its reason.
DocTable table_of_records(std::span<const replay::Record> records, bool traces, bool layers) {
  const bool ties = std::ranges::any_of(records, has_tie);
  std::vector<Brief> columns = columns_of(records);
  move_test(columns, records.front());
  if (layers)
    columns.insert(columns.begin() + 1,
                   {{"layer"}, [](const replay::Record& r) { return r.layer ? fmt::format("{}", *r.layer) : "all"; }});
  if (traces) columns.insert(columns.begin(), {{"trace"}, &replay::Record::trace});
  const std::size_t names = 2 + (layers ? 1 : 0) + (traces ? 1 : 0);
  DocTable table = filled<replay::Record>({}, columns, records);
  if (ties) table.columns[ranked_column(columns, records.front())].title += ' ';
  for (std::size_t i = 0; i < records.size(); ++i) {
    const replay::Record& r = records[i];
    if (r.status != replay::Status::ok) {
      table.rows[i].resize(names);
      table.rows[i].emplace_back(fmt::format("{}: {}", name_of(r.status), r.reason));
    } else if (ties) {
      table.rows[i][ranked_column(columns, r)].text += has_tie(r) ? '~' : ' ';
    }
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
    if (r.over_prompts()) several.insert(r.sha256);
  }
  std::vector<replay::Record> shown;
  std::ranges::copy_if(records, std::back_inserter(shown), [&](const replay::Record& r) {
    return !r.layer && (r.over_prompts() || !several.contains(r.sha256));
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
  using Average = compare::TextSummary;
  std::vector<Average> texts = compare::summarize_texts(records);
  std::erase_if(texts, [](const Average& t) { return t.texts < 3; });
  if (texts.empty()) return std::nullopt;
  return filled<Average>(
      {},
      {{{"over texts"},
        [](const Average& t) {
          return compare::label_of({t.method, t.params, {}});
        }},
       {{"budget", true}, &Average::budget},
       {{"texts", true}, &Average::texts},
       {{std::string(figure_of(texts.back().figure).heading()), true},
        [](const Average& t) { return mark_of(figure_of(t.figure), t.error) + short_number(t.error); }},
       {{"95% interval", true}, [](const Average& t) { return short_interval(t.interval.lo, t.interval.hi); }},
       {{"mean rank", true}, [](const Average& t) { return short_number(t.mean_rank); }},
       {{"wins", true}, &Average::wins}},
      texts);
}

}  // namespace kvbench::report
