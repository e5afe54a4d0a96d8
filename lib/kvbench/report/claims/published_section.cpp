// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/claims/sections.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include <fmt/ranges.h>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/statistics.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/drawing/charts.hpp>
#include <kvbench/report/read/table_kind.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

constexpr const char* all_by_default[] = {"layer", "kv_head", "head", "query"};

bool names(const Published::Filter& filter, std::string_view column) {
  return std::ranges::any_of(filter, [&](const auto& pair) { return pair.first == column; });
}

/// Whether every column of the filter has its value.
bool agrees(const CsvTable& table, const CsvRow& row, const Published::Filter& filter) {
  return std::ranges::all_of(
      filter, [&](const auto& pair) { return table.has(pair.first) && table.text(row, pair.first) == pair.second; });
}

bool matches(const CsvTable& table, const CsvRow& row, const Published::Filter& filter) {
  for (const char* column : all_by_default) {
    if (!names(filter, column) && table.text(row, column) != "all") return false;
  }
  return agrees(table, row, filter);
}

/// Rows that match the filter. Where it names no prompt and some rows are over all prompts, only those.
std::vector<std::pair<const CsvTable*, const CsvRow*>> find_rows(std::span<const CsvTable* const> tables,
                                                                 const Published::Filter& filter) {
  std::vector<std::pair<const CsvTable*, const CsvRow*>> rows;
  for (const CsvTable* table : tables) {
    for (const CsvRow& row : table->rows) {
      if (matches(*table, row, filter)) rows.emplace_back(table, &row);
    }
  }
  const auto over_all = [](const auto& row) { return row.first->text(*row.second, "prompt") == "all"; };
  if (!names(filter, "prompt") && std::ranges::any_of(rows, over_all))
    std::erase_if(rows, [&](const auto& row) { return !over_all(row); });
  return rows;
}

/// "0.117 [0.112, 0.122]" where the table also has NAME_lo and NAME_hi for NAME_mean.
std::string ours(const CsvTable& table, const CsvRow& row, const std::string& metric) {
  if (!table.has(metric))
    throw Error("{}: lacks the column '{}', which a published number is compared with", table.file, metric);
  if (table.text(row, "status") != "ok") return table.text(row, "status") + ": " + table.text(row, "reason");
  const double value = table.number(row, metric);
  if (std::isnan(value)) return "does not apply";
  if (!metric.ends_with("_mean")) return short_number(value);
  const std::string name = metric.substr(0, metric.size() - 5);
  return interval_text(value, table.number(row, name + "_lo"), table.number(row, name + "_hi"));
}

std::string filter_text(const Published::Filter& filter) {
  std::string out;
  for (const auto& [column, value] : filter)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", column, value.empty() ? "(none)" : value);
  return out;
}

/// The mean of a measure over heads per trace, with its extremes.
std::vector<std::pair<std::string, std::string>> measured_means(std::span<const CsvTable* const> tables,
                                                                const Published::Filter& filter) {
  std::vector<std::pair<std::string, std::vector<double>>> traces;
  for (const CsvTable* table : tables) {
    for (const CsvRow& row : table->rows) {
      if (!agrees(*table, row, filter)) continue;
      const std::string& trace = table->text(row, "trace");
      auto known = std::ranges::find(traces, trace, &std::pair<std::string, std::vector<double>>::first);
      if (known == traces.end()) known = traces.insert(traces.end(), {trace, {}});
      known->second.push_back(table->number(row, "value"));
    }
  }
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [trace, values] : traces) {
    const auto [least, most] = std::ranges::minmax(values);
    out.emplace_back(trace, fmt::format("{} ({} to {} over {} heads)", short_number(mean(values)), short_number(least),
                                        short_number(most), values.size()));
  }
  return out;
}

constexpr std::size_t most_values = 8;  // of a column, which a cell lists

/// The first column of a filter whose value no row has, and the values that rows have.
std::string no_row(std::span<const CsvTable* const> tables, const Published::Filter& filter) {
  for (const auto& [column, value] : filter) {
    std::set<std::string> known;
    for (const CsvTable* table : tables) {
      for (const CsvRow& row : table->rows)
        known.insert(table->has(column) ? fmt::format("'{}'", table->text(row, column)) : "no such column");
    }
    if (known.contains(fmt::format("'{}'", value))) continue;
    const std::size_t more = known.size() - std::min(known.size(), most_values);
    return fmt::format("no row of the results has {} = '{}'; there is {}{}", column, value,
                       fmt::join(known.begin(), std::prev(known.end(), static_cast<std::ptrdiff_t>(more)), ", "),
                       more > 0 ? fmt::format(" and {} more", more) : "");
  }
  return "no row of the results has all of these";
}

/// The numbers of the paper beside ours.
DocTable number_table(const Published& p, const ReportTables& tables) {
  DocTable out{.title = "Published numbers",
               .columns = {{"paper", false, true},
                           {"row", false, true},
                           {"budget"},
                           {"trace"},
                           {"metric"},
                           {"kvbench, mean [95 % interval]", true}},
               .merged = 1};
  for (Published::Filter filter : p.rows) {
    std::string paper = p.paper;
    const auto own = std::ranges::find(filter, "paper", &std::pair<std::string, std::string>::first);
    if (own != filter.end()) {
      paper = own->second;
      filter.erase(own);
    }
    const auto add = [&](const std::string& budget, const std::string& trace, TableCell value) {
      out.rows.push_back({paper, filter_text(filter), budget, trace, p.metric, std::move(value)});
    };
    const auto replayed = find_rows(tables.replays, filter);
    const auto heads = names(filter, "measure") ? measured_means(tables.measures, filter)
                                                : decltype(measured_means(tables.measures, filter)){};
    if (replayed.empty() && heads.empty())
      add("", "", {no_row(names(filter, "measure") ? tables.measures : tables.replays, filter), Tone::bad});
    for (const auto& [table, row] : replayed)
      add(table->text(*row, "budget"), table->text(*row, "trace"), ours(*table, *row, p.metric));
    for (const auto& [trace, value] : heads) add("", trace, value);
  }
  return compact(std::move(out));
}

TableCell verdict_of_relation(const compare::RelationResult& result) {
  const Tone tone = result.verdict == Verdict::contradicted ? Tone::bad
                    : result.verdict == Verdict::supported  ? Tone::plain
                                                            : Tone::dim;
  return {std::string(name_of(result.verdict)), tone};
}

/// What all results of a claim share stands above their table, or elsewhere in the report.
bool share(const compare::ClaimResult& claim, std::string compare::Comparison::*text) {
  const std::string& first = claim.results.front().comparison.*text;
  return std::ranges::all_of(claim.results, [&](const auto& r) { return r.comparison.*text == first; });
}

DocTable test_table(const compare::ClaimResult& claim) {
  const bool one_trace = share(claim, &compare::Comparison::trace),
             same_units = share(claim, &compare::Comparison::tested_over);
  std::vector<compare::Comparison> rows;
  for (const compare::RelationResult& result : claim.results) rows.push_back(result.comparison);
  const MeanKinds kinds = mean_kinds(rows);
  using Result = compare::RelationResult;
  // A cell that results without a comparison leave empty.
  const auto compared = [](auto of) {
    return [of](const Result& r) {
      return r.comparison.outcome == compare::Outcome::skipped ? std::string() : std::string(of(r.comparison));
    };
  };
  const auto mean = [kinds](const compare::Comparison& c, double value) {
    return (kinds.mixed && c.has_geometric_means() ? "geometric " : "") + three_digits(value);
  };
  const auto ratio = [](const compare::Comparison& c) {
    const auto [value, interval] = c.effect();
    return interval_text(value, interval.lo, interval.hi);
  };
  return compact(filled<Result>(
      {.title = "Tests", .merged = 1},
      {{{"relation", false, true}, &Result::relation},
       {{"trace", false, false, true}, [=](const Result& r) { return one_trace ? "" : r.comparison.trace; }},
       {{"place"}, [](const Result& r) { return test_text(r, false); }},
       {{"verdict"}, verdict_of_relation},
       {{kinds.word + " a", true}, compared([=](const auto& c) { return mean(c, c.means().first); })},
       {{kinds.word + " b", true}, compared([=](const auto& c) { return mean(c, c.means().second); })},
       {{"a / b [adjusted 95 % interval]", true}, compared(ratio)},
       {{"p, by Holm", true}, compared([](const auto& c) { return short_number(c.p_adjusted); })},
       {{"tested over", false, false, true}, compared([=](const auto& c) { return same_units ? "" : c.tested_over; })},
       {{"seeds", true, false, true},
        compared([](const auto& c) { return c.seeds > 0 ? fmt::format("{}", c.seeds) : ""; })},
       {{"note", false, true, true}, [](const Result& r) { return r.comparison.reason; }}},
      claim.results));
}

constexpr double level_margin = 1.1;

/// A value of one line of one drawing.
struct ClaimPoint {
  std::string place, line;
  Budget budget;
  double value, lo = NAN, hi = NAN;
};

double position_of(const Budget& budget) {
  return budget.is_share() ? 100 * budget.share() : static_cast<double>(budget.resolve(0, 1));
}

template <class T>
std::vector<T> distinct(const std::vector<ClaimPoint>& points, T ClaimPoint::*member) {
  Distinct<T> values;
  for (const ClaimPoint& point : points) values.add(point.*member);
  return values.list();
}

Axis budget_axis(const std::vector<ClaimPoint>& points) {
  Axis axis{.scale = Scale::log, .lo = INFINITY, .hi = 0, .title = "budget"};
  for (const Budget& budget : distinct(points, &ClaimPoint::budget)) {
    const double x = position_of(budget);
    axis.lo = std::min(axis.lo, x / 1.12), axis.hi = std::max(axis.hi, x * 1.12);
    axis.ticks.push_back({x, budget.text()});
  }
  std::ranges::stable_sort(axis.ticks, {}, &Tick::value);
  return axis;
}

/// Includes the levels.
Axis value_axis(const std::vector<ClaimPoint>& points, const std::string& title, const std::vector<double>& levels) {
  std::vector<double> values;
  for (const ClaimPoint& point : points) {
    for (const double value : {point.value, point.lo, point.hi}) values.push_back(value);
  }
  Extent extent = log_extent(values);
  for (const double level : levels)
    extent = {std::min(extent.lo, level / level_margin), std::max(extent.hi, level * level_margin)};
  return log_axis(extent, title);
}

ChartLine line_of(const std::vector<ClaimPoint>& points, const std::string& place, const std::string& name, int style) {
  ChartLine line{.name = name, .style = style};
  if (name.find(" / ") == name.npos) line.name = compare::configuration_of(name).method;  // else it is a ratio of two
  line.detail = name.substr(line.name.size());
  for (const ClaimPoint& p : points) {
    if (p.place != place || p.line != name) continue;
    line.points.push_back({position_of(p.budget), p.value, p.lo, p.hi,
                           fmt::format("{}, {}: {}", name, p.budget, interval_text(p.value, p.lo, p.hi))});
  }
  std::ranges::stable_sort(line.points, {}, &ChartPoint::x);
  return line;
}

/// One drawing per place, with the same axes and lines across at these levels.
Figure figure_of(const std::vector<ClaimPoint>& points, const std::string& what, const std::string& caption,
                 const std::vector<double>& levels) {
  Figure figure{.title = what + " against budget", .caption = caption};
  figure.numbers = {
      .title = "Numbers", .columns = {{"place"}, {"line"}, {"budget"}, {what, true}}, .folded = true, .merged = 2};
  const std::vector<std::string> lines = distinct(points, &ClaimPoint::line);
  for (const std::string& place : distinct(points, &ClaimPoint::place)) {
    LineChart chart{.title = place,
                    .description = figure.title,
                    .x = budget_axis(points),
                    .y = value_axis(points, what, levels),
                    .levels = levels,
                    .apart = true};
    for (std::size_t i = 0; i < lines.size(); ++i) {
      chart.lines.push_back(line_of(points, place, lines[i], static_cast<int>(i)));
      if (chart.lines.back().points.empty()) chart.lines.pop_back();
    }
    figure.drawings.push_back(draw(chart));
  }
  for (const ClaimPoint& p : points)
    figure.numbers.rows.push_back({p.place, p.line, p.budget.text(), interval_text(p.value, p.lo, p.hi)});
  return figure;
}

/// The metric of a claim, and the ratio of its two sides, against the budget: one drawing per place.
std::vector<Block> claim_figures(const compare::ClaimResult& claim) {
  std::vector<ClaimPoint> means, ratios;
  const auto add_mean = [&](ClaimPoint point) {
    const auto same = [&](const ClaimPoint& p) {
      return p.place == point.place && p.line == point.line && p.budget == point.budget;
    };
    if (std::ranges::none_of(means, same)) means.push_back(std::move(point));
  };
  const auto other_trace = [&](const compare::RelationResult& r) {
    return r.comparison.trace != claim.results.front().comparison.trace;
  };
  const bool several = std::ranges::any_of(claim.results, other_trace);
  const bool geometric = std::ranges::all_of(claim.results, [](const compare::RelationResult& r) {
    return r.comparison.outcome == compare::Outcome::skipped || r.comparison.has_geometric_means();
  });
  for (const compare::RelationResult& result : claim.results) {
    compare::Comparison c = result.comparison;
    if (c.outcome == compare::Outcome::skipped) continue;
    c.run.clear();  // runs share a drawing
    const std::string place = place_text(c, several);
    const auto [a, b] = geometric ? c.means() : std::pair(c.test.mean_a, c.test.mean_b);
    add_mean({place, c.a, c.budget_a, a});
    add_mean({place, c.b, c.budget_b, b});
    const auto [ratio, interval] = c.effect();
    ratios.push_back({place, c.a + " / " + c.b, c.budget_a, ratio, interval.lo, interval.hi});
  }
  if (means.empty()) return {};
  const compare::Comparison& one = claim.results.front().comparison;
  const std::string source = fmt::format("{}. {}, {}.", claim.claim.text, one.model, one.trace);
  std::vector<Block> out = {
      figure_of(means, fmt::format("{}mean {}", geometric ? "geometric " : "", claim.claim.metric.name),
                geometric
                    ? "Geometric means over layers and texts of the means over queries and seeds, which the tests "
                      "compare."
                    : "Means over the queries and seeds that the tests compare.",
                {}),
      figure_of(ratios, "ratio", "Bars: adjusted 95 % interval over the units of the tests. Dashed line: equal.", {1})};
  for (Block& block : out) {
    Figure& figure = std::get<Figure>(block);
    figure.alone = source + " " + figure.caption;
  }
  return out;
}

/// The verdict, then what it rests on.
void add_verdict(std::vector<Block>& blocks, const compare::ClaimResult& claim) {
  std::istringstream lines(verdict_text(claim));
  std::string line, first;
  std::getline(lines, first);
  blocks.push_back(Heading{3, first});
  while (std::getline(lines, line)) blocks.push_back(Paragraph{line.substr(2)});
  for (Block& block : claim_figures(claim)) blocks.push_back(std::move(block));
  if (!claim.results.empty()) blocks.emplace_back(test_table(claim));
}

std::vector<compare::ClaimResult> claims_in(const ReportTables& tables) {
  std::vector<compare::ClaimResult> out;
  for (const CsvTable* table : tables.claims) std::ranges::move(claims_of(*table), std::back_inserter(out));
  return out;
}

/// How many claims have which verdict, and the verdict on each of the first ones, the contradicted ones before others.
AnswerBlock claim_answer(std::span<const Published> published, std::vector<compare::ClaimResult> results) {
  constexpr std::size_t most_claims = 6;
  std::string counts;
  const auto add = [&](std::ptrdiff_t n, std::string_view what) {
    if (n > 0) counts += fmt::format("{}{} {}", counts.empty() ? "" : ", ", n, what);
  };
  for (const Verdict verdict : claim_verdicts)
    add(std::ranges::count(results, verdict, &compare::ClaimResult::verdict), name_of(verdict));
  const auto missing = std::ranges::count_if(published, [&](const Published& p) {
    return std::ranges::none_of(results, [&](const compare::ClaimResult& r) { return r.claim.text == p.claim; });
  });
  add(missing, "without a verdict");
  const auto total = static_cast<std::size_t>(missing) + results.size();
  AnswerBlock out{"What these results say about the claims",
                  {fmt::format("Of {} claim{}: {}.", total, total == 1 ? "" : "s", counts)}};
  std::ranges::stable_sort(results, {}, [](const auto& r) { return r.verdict != Verdict::contradicted; });
  for (const compare::ClaimResult& one : std::span(results).first(std::min(results.size(), most_claims))) {
    const std::string text = verdict_text(one);
    out.sentences.push_back(text.substr(0, text.find('\n')));
  }
  return out;
}

}  // namespace

std::vector<Section> claim_sections(std::span<const Published> published, const ReportTables& tables) {
  if (published.empty() && tables.claims.empty()) return {};
  std::vector<compare::ClaimResult> results = claims_in(tables);
  Section out{.title = "Claims of the paper", .answers = {claim_answer(published, results)}, .whole = true};
  std::vector<Block>& blocks = out.blocks;
  for (const Published& p : published) {
    const auto result = std::ranges::find(results, p.claim, [](const compare::ClaimResult& r) { return r.claim.text; });
    if (result == results.end()) {
      blocks.push_back(Heading{3, p.claim});
      blocks.push_back(Paragraph{
          "No verdict: the sweep writes it beside its rows, into NAME.claims.csv; give this table to the report too."});
    } else {
      add_verdict(blocks, *result);
      results.erase(result);
    }
    append_filled(blocks, number_table(p, tables));
    if (p.rows.empty() && !p.paper.empty()) blocks.push_back(Paragraph{"The paper: " + p.paper + "."});
    if (!p.why.empty()) blocks.push_back(Paragraph{"Possible reasons for differences: " + p.why + "."});
  }
  for (const compare::ClaimResult& result : results) add_verdict(blocks, result);
  return {out};
}

}  // namespace kvbench::report
