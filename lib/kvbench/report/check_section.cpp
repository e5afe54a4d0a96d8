// SPDX-License-Identifier: Apache-2.0
// Rows of `kvbench validate`: verdicts by claim, what is violated, bounds beside what was measured, what could not be tested.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/report_parts.hpp>
#include <kvbench/report/text.hpp>

namespace kvbench {
namespace {

constexpr std::array<const char*, 4> verdicts = {"consistent", "violated", "vacuous", "not applicable"};

struct CheckLine {
  const CsvTable* table;
  const CsvRow* row;
  const std::string& text(const char* column) const { return table->text(*row, column); }
  double number(const char* column) const { return table->number(*row, column); }
  bool is(const char* verdict) const { return text("verdict") == verdict; }
  bool finding() const { return text("kind") == "claim"; }  // about the trace; a violation of another kind is a fault
};

/// Rows of one statement on all its subjects.
struct Statement {
  std::vector<CheckLine> lines;
  const std::string& text(const char* column) const { return lines.front().text(column); }
};

std::vector<Statement> grouped(const std::vector<CheckLine>& lines, const std::vector<const char*>& by) {
  std::vector<Statement> groups;
  for (const CheckLine& line : lines) {
    const auto same = [&](const Statement& g) {
      return std::ranges::all_of(by, [&](const char* column) { return g.text(column) == line.text(column); });
    };
    const auto known = std::ranges::find_if(groups, same);
    if (known == groups.end())
      groups.push_back({{line}});
    else
      known->lines.push_back(line);
  }
  return groups;
}

std::size_t count_verdict(const Statement& group, const char* verdict) {
  return static_cast<std::size_t>(std::ranges::count_if(group.lines, [&](const CheckLine& l) { return l.is(verdict); }));
}

/// "0.12", or "0.1 … 0.3" over the subjects.
std::string range_in_group(const Statement& group, const char* column) {
  double lo = NAN, hi = NAN;
  for (const CheckLine& line : group.lines) {
    lo = std::fmin(lo, line.number(column));
    hi = std::fmax(hi, line.number(column));
  }
  if (std::isnan(lo)) return "";
  const std::string a = three_digits(lo), b = three_digits(hi);
  return a == b ? a : a + " … " + b;
}

std::string failures_in_group(const Statement& group) {
  double failed = 0, trials = 0;
  for (const CheckLine& line : group.lines) {
    if (line.text("failures").empty() || line.text("trials").empty()) continue;
    failed += line.number("failures");
    trials += line.number("trials");
  }
  return trials > 0 ? fmt::format("{:.0f} of {:.0f}", failed, trials) : "";
}

std::string smallest_in_group(const Statement& group, const char* column) {
  double lo = NAN;
  for (const CheckLine& line : group.lines) lo = std::fmin(lo, line.number(column));
  return std::isnan(lo) ? "" : three_digits(lo);
}

TableCell verdict_cell(const Statement& group) {
  std::string out;
  for (const char* verdict : verdicts) {
    const std::size_t n = count_verdict(group, verdict);
    if (n > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, verdict);
  }
  if (count_verdict(group, "violated") > 0) return {out, Tone::bad};
  return {out, count_verdict(group, "consistent") == 0 ? Tone::dim : Tone::plain};
}

std::string subject_of_line(const CheckLine& l) {
  std::string out = l.text("source");
  if (!l.text("layer").empty())
    out += fmt::format(", prompt {}, layer {}, kv head {}", l.text("prompt"), l.text("layer"), l.text("kv_head"));
  return out.empty() ? "-" : out;
}

DocTable claim_table(const std::vector<CheckLine>& lines) {
  DocTable table{.title = "Verdicts by claim", .columns = {{"claim"}}, .rows = {}};
  for (const char* verdict : verdicts) table.columns.push_back({verdict, true});
  for (const Statement& group : grouped(lines, {"claim"})) {
    std::vector<TableCell> cells = {group.text("claim")};
    for (const char* verdict : verdicts) {
      const std::size_t n = count_verdict(group, verdict);
      cells.emplace_back(fmt::format("{}", n), n > 0 && std::string_view(verdict) == "violated" ? Tone::bad
                                               : n == 0                                         ? Tone::dim
                                                                                                : Tone::plain);
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

DocTable bound_table(const std::vector<CheckLine>& lines) {
  DocTable table{.title = "Bounds and what was measured (over subjects: smallest … largest)",
                 .columns = {{"claim"}, {"statement", false, true}, {"kind"}, {"rows", true}, {"verdict"}},
                 .rows = {},
                 .merged = 1};
  const std::pair<const char*, const char*> numbers[] = {
      {"measured", "measured"},       {"99 % quantile", "measured_q99"}, {"bound: paper's constants", "literal"},
      {"bound: tight", "tight"},      {"bound: from data", "data"},      {"trivial bound", "trivial"},
      {"failures allowed", "allowed"}};
  for (const auto& [title, column] : numbers) table.columns.push_back({title, true});
  table.columns.push_back({"failures", true});
  table.columns.push_back({"least p, adjusted", true});
  for (const Statement& g : grouped(lines, {"claim", "part", "kind"})) {
    std::vector<TableCell> cells = {g.text("claim"), g.text("part"), g.text("kind"), fmt::format("{}", g.lines.size()),
                                    verdict_cell(g)};
    for (const auto& [title, column] : numbers) cells.emplace_back(range_in_group(g, column));
    cells.emplace_back(failures_in_group(g));
    cells.emplace_back(smallest_in_group(g, "p_adjusted"));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// Faults, then findings; rows that say the same of several subjects as one, in the words of the first.
DocTable violated_table(const std::vector<CheckLine>& lines, bool findings) {
  DocTable table{.title = findings ? "Findings: claims of papers that this data contradicts"
                                   : "Faults: statements that must hold and do not",
                 .columns = {{"claim"},
                             {"statement", false, true},
                             {"subjects", true},
                             {"the first of them", false, true},
                             {"in numbers", false, true}},
                 .rows = {},
                 .merged = 1};
  std::vector<CheckLine> bad;
  std::ranges::copy_if(lines, std::back_inserter(bad),
                       [&](const CheckLine& l) { return l.is("violated") && l.finding() == findings; });
  for (const Statement& g : grouped(bad, {"claim", "part"}))
    table.rows.push_back(
        {g.text("claim"), g.text("part"), fmt::format("{}", g.lines.size()), subject_of_line(g.lines.front()), g.text("text")});
  return table;
}

DocTable untested_table(const std::vector<CheckLine>& lines) {
  DocTable table{.title = "Not applicable, and why",
                 .columns = {{"claim"}, {"statement", false, true}, {"rows", true}, {"reason", false, true}},
                 .rows = {},
                 .folded = true,
                 .merged = 1};
  std::vector<CheckLine> untested;
  std::ranges::copy_if(lines, std::back_inserter(untested), [](const CheckLine& l) { return l.is("not applicable"); });
  for (const Statement& g : grouped(untested, {"claim", "part", "text"})) {
    const std::string& assumptions = g.text("assumptions_text");
    table.rows.push_back({g.text("claim"), g.text("part"), fmt::format("{}", g.lines.size()),
                          g.text("text").empty() ? assumptions : g.text("text")});
  }
  return table;
}

}  // namespace

std::vector<Block> check_blocks(std::span<const CsvTable* const> tables) {
  std::vector<CheckLine> lines;
  for (const CsvTable* table : tables) {
    for (const CsvRow& row : table->rows) {
      if (std::ranges::find(verdicts, table->text(row, "verdict")) == verdicts.end())
        throw Error("{}:{}: column 'verdict' holds '{}', which is no verdict of kvbench validate", table->file, row.line,
                    table->text(row, "verdict"));
      lines.push_back({table, &row});
    }
  }
  std::vector<Block> blocks = {
      Heading{2, "Bounds and claims"},
      Paragraph{"Each statement was tested on every subject (a kv head, a stream, or the whole trace). Consistent: nothing "
                "speaks against it. Violated: its "
                "assumptions are met and the data contradict it, which is a fault where the statement is a theorem, an "
                "identity or a stated cost, and a "
                "finding about this data where it is a claim. Vacuous: the bound is above what holds anyway."}};
  blocks.emplace_back(claim_table(lines));
  for (const bool findings : {false, true}) {
    DocTable table = violated_table(lines, findings);
    if (!table.rows.empty()) blocks.emplace_back(std::move(table));
  }
  blocks.emplace_back(bound_table(lines));
  DocTable untested = untested_table(lines);
  if (!untested.rows.empty()) blocks.emplace_back(std::move(untested));
  return blocks;
}

}  // namespace kvbench
