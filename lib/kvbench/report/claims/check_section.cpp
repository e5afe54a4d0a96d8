// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/claims/check_section.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

using Words = std::vector<const char*>;
const Words claim_words = {"supported", "contradicted", "undecided", "untestable"};
const Words statement_words = {"holds with margin", "holds", "violated", "vacuous", "not applicable"};
const Words data_words = {"none", "not applicable"};

struct CheckLine {
  const CsvTable* table;
  const CsvRow* row;
  const std::string& text(const char* column) const { return table->text(*row, column); }
  double number(const char* column) const { return table->number(*row, column); }
  bool is(const char* verdict) const { return text("verdict") == verdict; }
  bool of_claim() const { return text("kind") == "claim"; }
  bool of_data() const { return text("kind") == "data"; }
  const Words& verdicts() const { return of_claim() ? claim_words : of_data() ? data_words : statement_words; }
};

/// Rows of one statement, one per subject.
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

bool is_bad(std::string_view verdict) { return verdict == "violated" || verdict == "contradicted"; }

std::size_t count_verdict(const Statement& group, const char* verdict) {
  return static_cast<std::size_t>(
      std::ranges::count_if(group.lines, [&](const CheckLine& l) { return l.is(verdict); }));
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
  for (const char* verdict : group.lines.front().verdicts()) {
    const std::size_t n = count_verdict(group, verdict);
    if (n > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, verdict);
  }
  if (count_verdict(group, "violated") + count_verdict(group, "contradicted") > 0) return {out, Tone::bad};
  const std::size_t good =
      count_verdict(group, "holds") + count_verdict(group, "holds with margin") + count_verdict(group, "supported");
  return {out, good == 0 ? Tone::dim : Tone::plain};
}

std::string subject_of_line(const CheckLine& l) {
  std::string out = l.text("source");
  if (!l.text("layer").empty())
    out += fmt::format(", prompt {}, layer {}, kv head {}", l.text("prompt"), l.text("layer"), l.text("kv_head"));
  return out.empty() ? "-" : out;
}

/// Rows per verdict of each id, for claims of papers or for all other statements.
DocTable count_table(const std::vector<CheckLine>& lines, bool claims) {
  DocTable table{.title = claims ? "Claims of papers: number of tests by verdict"
                                 : "Theorems, identities and costs: number of rows by verdict",
                 .columns = {{"claim"}},
                 .rows = {}};
  const auto& columns = claims ? claim_words : statement_words;
  for (const char* verdict : columns) table.columns.push_back({verdict, true});
  for (const Statement& group : grouped(lines, {"claim"})) {
    std::vector<TableCell> cells = {group.text("claim")};
    for (const char* verdict : columns) {
      const std::size_t n = count_verdict(group, verdict);
      cells.emplace_back(fmt::format("{}", n), n == 0 ? Tone::dim : is_bad(verdict) ? Tone::bad : Tone::plain);
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

DocTable bound_table(const std::vector<CheckLine>& lines) {
  DocTable table{.title = "Bounds and measured values (smallest … largest over the subjects)",
                 .columns = {{"claim"}, {"statement", false, true}, {"kind"}, {"rows", true}, {"verdict"}},
                 .rows = {},
                 .merged = 1};
  const std::pair<const char*, const char*> numbers[] = {
      {"measured", "measured"},       {"99 % quantile", "measured_q99"}, {"bound: paper's constants", "literal"},
      {"bound: tight", "tight"},      {"bound: from data", "data"},      {"trivial bound", "trivial"},
      {"failures allowed", "allowed"}};
  for (const auto& [title, column] : numbers) table.columns.push_back({title, true});
  table.columns.push_back({"failures", true});
  table.columns.push_back({"smallest adjusted p", true});
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

/// Faults or findings, one row per statement, with the first of its subjects.
DocTable refuted_table(const std::vector<CheckLine>& lines, bool findings) {
  DocTable table{.title = findings ? "Findings: claims of papers that the data contradict"
                                   : "Faults: statements that must hold but do not",
                 .columns = {{"claim"},
                             {"statement", false, true},
                             {"subjects", true},
                             {"first subject", false, true},
                             {"values", false, true}},
                 .rows = {},
                 .merged = 1};
  std::vector<CheckLine> bad;
  std::ranges::copy_if(lines, std::back_inserter(bad),
                       [&](const CheckLine& l) { return l.is(findings ? "contradicted" : "violated"); });
  for (const Statement& g : grouped(bad, {"claim", "part"}))
    table.rows.push_back({g.text("claim"), g.text("part"), fmt::format("{}", g.lines.size()),
                          subject_of_line(g.lines.front()), g.text("text")});
  return table;
}

DocTable undecided_table(const std::vector<CheckLine>& lines) {
  DocTable table{.title = "Claims that could not be decided, and the units that it would take at the measured effect",
                 .columns = {{"claim"},
                             {"statement", false, true},
                             {"rows", true},
                             {"units", true},
                             {"units needed", true},
                             {"values of the first", false, true}},
                 .rows = {},
                 .merged = 1};
  std::vector<CheckLine> undecided;
  std::ranges::copy_if(lines, std::back_inserter(undecided), [](const CheckLine& l) { return l.is("undecided"); });
  for (const Statement& g : grouped(undecided, {"claim", "part"}))
    table.rows.push_back({g.text("claim"), g.text("part"), fmt::format("{}", g.lines.size()),
                          range_in_group(g, "units"), range_in_group(g, "units_needed"), g.text("text")});
  return table;
}

DocTable untested_table(const std::vector<CheckLine>& lines) {
  DocTable table{.title = "Statements that could not be tested",
                 .columns = {{"claim"}, {"statement", false, true}, {"rows", true}, {"reason", false, true}},
                 .rows = {},
                 .folded = true,
                 .merged = 1};
  std::vector<CheckLine> untested;
  std::ranges::copy_if(lines, std::back_inserter(untested),
                       [](const CheckLine& l) { return l.is("not applicable") || l.is("untestable"); });
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
      const CheckLine line{table, &row};
      if (std::ranges::find(line.verdicts(), line.text("verdict")) == line.verdicts().end())
        throw Error(
            "{}:{}: column 'verdict' holds '{}', which is not a verdict of kvbench validate on a row of kind '{}'",
            table->file, row.line, line.text("verdict"), line.text("kind"));
      lines.push_back(line);
    }
  }
  std::vector<Block> blocks = {
      Heading{2, "Bounds and claims"},
      Paragraph{
          "Each statement was tested on every subject (a kv head, a stream, or the whole trace). Claims of papers are "
          "tested in both directions: supported or contradicted where one is significant at 5 %, else undecided; "
          "untestable where there are no data. Theorems, identities and costs are violated (a fault) where the data "
          "refute them; otherwise they hold, with margin where the interval of the failure probability lies below the "
          "allowed one; they are vacuous where the bound says no more than the trivial one."}};
  for (const bool claims : {true, false}) {
    std::vector<CheckLine> part;
    std::ranges::copy_if(lines, std::back_inserter(part),
                         [&](const CheckLine& l) { return l.of_claim() == claims && !l.of_data(); });
    if (!part.empty()) blocks.emplace_back(count_table(part, claims));
  }
  for (const bool findings : {false, true}) {
    DocTable table = refuted_table(lines, findings);
    if (!table.rows.empty()) blocks.emplace_back(std::move(table));
  }
  DocTable undecided = undecided_table(lines);
  if (!undecided.rows.empty()) blocks.emplace_back(std::move(undecided));
  blocks.emplace_back(bound_table(lines));
  DocTable untested = untested_table(lines);
  if (!untested.rows.empty()) blocks.emplace_back(std::move(untested));
  return blocks;
}

}  // namespace kvbench::report
