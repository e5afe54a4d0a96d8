// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/claims/sections.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/statistics.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/read/checked_rows.hpp>
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

TableCell verdict_cell(Verdict verdict) {
  const Tone tone = verdict == Verdict::contradicted ? Tone::bad
                    : verdict == Verdict::supported  ? Tone::plain
                                                     : Tone::dim;
  return {std::string(name_of(verdict)), tone};
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
  DocTable out{.title = "Tests",
               .columns = {{"relation", false, true},
                           {"trace", false, false, true},
                           {"place"},
                           {"verdict"},
                           {kinds.word + " a", true},
                           {kinds.word + " b", true},
                           {"a / b [adjusted 95 % interval]", true},
                           {"p, by Holm", true},
                           {"tested over", false, false, true},
                           {"seeds", true, false, true},
                           {"note", false, true, true}},
               .merged = 1};
  for (const compare::RelationResult& result : claim.results) {
    const compare::Comparison& c = result.comparison;
    std::vector<TableCell> cells = {result.relation, one_trace ? "" : c.trace, test_text(result, false),
                                    verdict_cell(result.verdict)};
    if (c.outcome == compare::Outcome::skipped) {
      cells.resize(10);
    } else {
      const auto [a, b] = c.means();
      const char* kind = kinds.mixed && c.has_geometric_means() ? "geometric " : "";
      for (const double mean : {a, b}) cells.emplace_back(kind + three_digits(mean));
      const auto [ratio, interval] = c.effect();
      cells.emplace_back(interval_text(ratio, interval.lo, interval.hi));
      cells.emplace_back(short_number(c.p_adjusted));
      cells.emplace_back(same_units ? "" : c.tested_over);
      cells.emplace_back(c.seeds > 0 ? fmt::format("{}", c.seeds) : "");
    }
    cells.emplace_back(c.reason);
    out.rows.push_back(std::move(cells));
  }
  return compact(std::move(out));
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

}  // namespace

AnswerBlock claim_answer(std::span<const Published> published, const ReportTables& tables) {
  constexpr std::size_t most_claims = 6;
  std::vector<compare::ClaimResult> results = claims_in(tables);
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

std::vector<Block> published_blocks(std::span<const Published> published, const ReportTables& tables) {
  std::vector<compare::ClaimResult> results = claims_in(tables);
  std::vector<Block> blocks = {Heading{2, "Claims of the paper"}};
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
  return blocks;
}

}  // namespace kvbench::report
