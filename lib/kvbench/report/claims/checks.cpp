// SPDX-License-Identifier: Apache-2.0
// Checks of theorems and of claims of papers, in a report and on a terminal.
#include <kvbench/report/claims/sections.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/read/rows.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

using evidence::CheckKind;
using evidence::CheckRow;
using Verdicts = std::span<const Verdict>;

constexpr std::array data_verdicts = {Verdict::none, Verdict::not_applicable};

/// The verdicts that a row may have.
Verdicts verdicts_of(const CheckRow& row) {
  if (row.kind == CheckKind::claim) return claim_verdicts;
  return row.kind == CheckKind::data ? Verdicts(data_verdicts) : statement_verdicts;
}

bool is_bad(Verdict verdict) { return verdict == Verdict::violated || verdict == Verdict::contradicted; }

using CheckRows = std::vector<const CheckRow*>;

/// Rows with something in common: a check, or a statement of one.
struct Statement {
  CheckRows rows;

  const CheckRow& first() const { return *rows.front(); }
  const std::string& id() const { return first().check; }
  Index count(Verdict verdict) const {
    return std::ranges::count_if(rows, [&](const CheckRow* row) { return row->verdict == verdict; });
  }
  bool has(Verdict verdict) const { return count(verdict) > 0; }
  bool any(bool (*is)(Verdict)) const {
    return std::ranges::any_of(rows, [&](const CheckRow* row) { return is(row->verdict); });
  }
  Verdict joint() const {
    std::vector<Verdict> verdicts;
    for (const CheckRow* row : rows) verdicts.push_back(row->verdict);
    return joint_verdict(verdicts);
  }
};
using Statements = std::vector<Statement>;

CheckRows rows_where(std::span<const CheckRow> rows, const auto& wanted) {
  CheckRows out;
  for (const CheckRow& row : rows) {
    if (wanted(row)) out.push_back(&row);
  }
  return out;
}

/// Rows with the same key, in order of appearance.
template <class Key>
Statements grouped(const CheckRows& rows, Key key) {
  OrderedMap<decltype(key(*rows.front())), Statement> groups;
  for (const CheckRow* row : rows) groups[key(*row)].rows.push_back(row);
  Statements out;
  for (auto& [of_group, group] : groups.items()) out.push_back(std::move(group));
  return out;
}
Statements by_part(const CheckRows& rows) {
  return grouped(rows, [](const CheckRow& r) { return std::tuple(r.check, r.part); });
}

/// By id: claims of papers, or all other checks with a verdict.
Statements by_check(std::span<const CheckRow> rows, bool claims) {
  const auto wanted = [&](const CheckRow& row) {
    return row.verdict != Verdict::none && row.kind != CheckKind::data && (row.kind == CheckKind::claim) == claims;
  };
  return grouped(rows_where(rows, wanted), [](const CheckRow& r) { return r.check; });
}

/// "0.12", or "0.1 … 0.3" over the subjects.
template <class Number>
std::string range_in_group(const Statement& group, Number number, std::string (*text_of)(double) = three_digits) {
  double lo = NAN, hi = NAN;
  for (const CheckRow* row : group.rows) {
    lo = std::fmin(lo, std::invoke(number, *row));
    hi = std::fmax(hi, std::invoke(number, *row));
  }
  if (std::isnan(lo)) return "";
  const std::string a = text_of(lo), b = text_of(hi);
  return a == b ? a : a + " … " + b;
}

std::string failures_in_group(const Statement& group) {
  std::int64_t failed = 0, trials = 0;
  for (const CheckRow* row : group.rows) {
    if (row->failures && row->trials) failed += *row->failures, trials += *row->trials;
  }
  return trials > 0 ? fmt::format("{} of {}", failed, trials) : "";
}

std::string smallest_in_group(const Statement& group, double CheckRow::*number) {
  double lo = NAN;
  for (const CheckRow* row : group.rows) lo = std::fmin(lo, row->*number);
  return std::isnan(lo) ? "" : three_digits(lo);
}

TableCell verdict_cell(const Statement& group) {
  std::string out;
  for (const Verdict verdict : verdicts_of(group.first())) {
    if (group.has(verdict))
      out += fmt::format("{}{} {}", out.empty() ? "" : ", ", group.count(verdict), name_of(verdict));
  }
  if (group.any(is_bad)) return {out, Tone::bad};
  return {out, group.any(holds) || group.has(Verdict::supported) ? Tone::plain : Tone::dim};
}

std::string subject_of(const CheckRow& r) {
  std::string out = r.source;
  if (r.layer) out += fmt::format(", prompt {}, layer {}, kv head {}", r.prompt, *r.layer, r.kv_head.value_or(0));
  return out.empty() ? "-" : out;
}

using StatementColumn = RowColumn<Statement>;

/// The columns by which tables name a statement, before those of what they say of it.
std::vector<StatementColumn> with_names(std::vector<StatementColumn> columns) {
  std::vector<StatementColumn> out = {{{"claim"}, &Statement::id},
                                      {{"statement", false, true}, [](const Statement& g) { return g.first().part; }}};
  std::ranges::move(columns, std::back_inserter(out));
  return out;
}
std::string rows_in_group(const Statement& group) { return fmt::format("{}", group.rows.size()); }
std::string text_of_first(const Statement& group) { return group.first().text; }
auto smallest(double CheckRow::*number) {
  return [number](const Statement& group) { return smallest_in_group(group, number); };
}

/// Rows per verdict of each check: claims of papers with the verdict on all of them, or all other statements.
DocTable count_table(std::span<const CheckRow> rows, bool claims) {
  std::vector<StatementColumn> columns = {
      {{claims ? "claim of a paper" : "theorem, identity or cost"}, &Statement::id}};
  for (const Verdict verdict : claims ? Verdicts(claim_verdicts) : statement_verdicts) {
    columns.push_back(
        {{std::string(name_of(verdict)), true}, [verdict](const Statement& group) {
           const Index n = group.count(verdict);
           return TableCell(fmt::format("{}", n), n == 0 ? Tone::dim : is_bad(verdict) ? Tone::bad : Tone::plain);
         }});
  }
  if (claims)
    columns.push_back({{"verdict"}, [](const Statement& group) { return std::string(name_of(group.joint())); }});
  return filled<Statement>({}, columns, by_check(rows, claims));
}

DocTable bound_table(std::span<const CheckRow> rows) {
  std::vector<StatementColumn> columns =
      with_names({{{"kind"}, [](const Statement& g) { return std::string(name_of(g.first().kind)); }},
                  {{"rows", true}, rows_in_group},
                  {{"verdict"}, verdict_cell}});
  const auto add = [&](const char* title, double CheckRow::*number, bool screen = true) {
    columns.push_back(
        {{title, true, false, screen}, [number](const Statement& g) { return range_in_group(g, number); }});
  };
  add("measured", &CheckRow::measured, false);
  add("99 % quantile", &CheckRow::measured_q99);
  add("bound: paper's constants", &CheckRow::literal, false);
  add("bound: tight", &CheckRow::tight);
  add("bound: from data", &CheckRow::data);
  add("trivial bound", &CheckRow::trivial);
  add("failures allowed", &CheckRow::allowed);
  columns.push_back({{"failures", true}, failures_in_group});
  columns.push_back({{"smallest adjusted p", true, false, true}, smallest(&CheckRow::p_adjusted)});
  const auto all = rows_where(rows, [](const CheckRow&) { return true; });
  return compact(
      filled<Statement>({.title = "Bounds and measured values (smallest … largest over the subjects)", .merged = 1},
                        columns, grouped(all, [](const CheckRow& r) { return std::tuple(r.check, r.part, r.kind); })));
}

/// Faults or findings, one row per statement, with the first of its subjects.
DocTable refuted_table(std::span<const CheckRow> rows, bool findings) {
  const auto refuted = [&](const CheckRow& r) {
    return r.verdict == (findings ? Verdict::contradicted : Verdict::violated);
  };
  return filled<Statement>(
      {.title = findings ? "Findings: claims of papers that the data contradict"
                         : "Faults: statements that must hold but do not",
       .merged = 1},
      with_names({{{"subjects", true}, rows_in_group},
                  {{"first subject", false, true, true}, [](const Statement& g) { return subject_of(g.first()); }},
                  {{"values", false, true}, text_of_first}}),
      by_part(rows_where(rows, refuted)));
}

double units(const CheckRow& row) { return row.units > 0 ? static_cast<double>(row.units) : NAN; }

DocTable undecided_table(std::span<const CheckRow> rows) {
  const auto range = [](auto of) {
    return [of](const Statement& group) { return range_in_group(group, of, short_number); };
  };
  return compact(filled<Statement>(
      {.title = "Claims that could not be decided, and the units that it would take at the measured effect",
       .merged = 1},
      with_names({{{"rows", true}, rows_in_group},
                  {{"units", true}, range(units)},
                  {{"units needed", true}, range(&CheckRow::units_needed)},
                  {{"smallest p", true}, smallest(&CheckRow::p_value)},
                  {{"by Holm", true}, smallest(&CheckRow::p_adjusted)},
                  {{"values of the first", false, true}, text_of_first}}),
      by_part(rows_where(rows, [](const CheckRow& r) { return r.verdict == Verdict::undecided; }))));
}

DocTable untested_table(std::span<const CheckRow> rows) {
  const auto untested = [](const CheckRow& r) {
    return r.verdict == Verdict::not_applicable || r.verdict == Verdict::untestable;
  };
  const auto reason = [](const Statement& g) {
    return g.first().text.empty() ? g.first().assumptions_text : g.first().text;
  };
  return filled<Statement>(
      {.title = "Statements that could not be tested", .folded = true, .merged = 1},
      with_names({{{"rows", true}, rows_in_group}, {{"reason", false, true}, reason}}),
      grouped(rows_where(rows, untested), [](const CheckRow& r) { return std::tuple(r.check, r.part, r.text); }));
}

std::vector<CheckRow> rows_of(const CsvTable& table) {
  const RowReader<CheckRow> read(table, check_columns());
  std::vector<CheckRow> rows;
  for (const CsvRow& line : table.rows) {
    rows.push_back(read(line));
    const CheckRow& row = rows.back();
    if (std::ranges::count(verdicts_of(row), row.verdict) == 0)
      throw Error(
          "{}:{}: column 'verdict' holds '{}', which is not a verdict of kvbench validate on a row of kind '{}'",
          table.file, line.line, name_of(row.verdict), name_of(row.kind));
  }
  return rows;
}

/// "a.b", or "a.b (supported in 1 of 3 tests)" where the tests of a claim have different verdicts.
std::string claim_text(const Statement& claim) {
  const Verdict counted = claim.joint() == Verdict::contradicted ? Verdict::contradicted : Verdict::supported;
  const auto count = static_cast<std::size_t>(claim.count(counted));
  if (count == claim.rows.size() || (counted == Verdict::supported && count == 0)) return claim.id();
  return fmt::format("{} ({} in {} of {} tests)", claim.id(), name_of(counted), count, claim.rows.size());
}

bool is_violated(const Statement& check) { return check.has(Verdict::violated); }
bool is_held(const Statement& check) { return !is_violated(check) && check.any(holds); }

/// Adds "TITLE: id, id, ...", unless there is none.
void add_ids(const std::string& title, const Statements& checks, const auto& belongs, const auto& text, const char* end,
             std::vector<std::string>& sentences) {
  std::vector<std::string> ids;
  for (const Statement& check : checks) {
    if (belongs(check)) ids.push_back(std::invoke(text, check));
  }
  if (!ids.empty()) sentences.push_back(fmt::format("{}: {}{}", title, fmt::join(ids, ", "), end));
}

/// The verdicts of the statements and of the claims, by the ids of both.
AnswerBlock verdicts_of(std::span<const CheckRow> rows) {
  const Statements statements = by_check(rows, false), claims = by_check(rows, true);
  AnswerBlock answer{"What these data say", {}};
  if (!statements.empty() && std::ranges::none_of(statements, is_violated))
    answer.sentences.push_back("No fault was found.");
  const auto add = [&](const char* what, const auto& belongs) {
    add_ids(what, statements, belongs, &Statement::id, ".", answer.sentences);
  };
  add("Violated, so that the code or the paper is wrong", is_violated);
  add("Hold on every subject with a verdict", is_held);
  add("Say no more than the trivial bound, or do not apply",
      [](const Statement& c) { return !is_violated(c) && !is_held(c); });
  const auto add_claims = [&](const char* what, const auto& is) {
    add_ids(
        what, claims, [&](const Statement& c) { return is(c.joint()); }, claim_text, ".", answer.sentences);
  };
  add_claims("Claims of papers that these data support", [](Verdict v) { return v == Verdict::supported; });
  add_claims("Claims of papers that these data contradict", [](Verdict v) { return v == Verdict::contradicted; });
  add_claims("Claims of papers that these data do not decide",
             [](Verdict v) { return v != Verdict::supported && v != Verdict::contradicted; });
  return answer;
}

std::vector<std::string> holding(const Statements& statements, const Statements& claims) {
  std::vector<std::string> out;
  const auto add = [&](const char* title, const Statements& checks, const auto& belongs) {
    add_ids(title, checks, belongs, &Statement::id, "", out);
  };
  const auto vacuous = [](const Statement& c) { return c.has(Verdict::vacuous); };
  const auto open = [](const Statement& c) { return !is_violated(c) && !is_held(c); };
  add("hold on every subject with a verdict", statements,
      [&](const Statement& c) { return is_held(c) && !vacuous(c); });
  add("hold, but on some subjects the bound says no more than the trivial one", statements,
      [&](const Statement& c) { return is_held(c) && vacuous(c); });
  add("say no more than the trivial bound on any subject", statements,
      [&](const Statement& c) { return open(c) && vacuous(c); });
  add("do not apply to any subject", statements, [&](const Statement& c) { return open(c) && !vacuous(c); });
  add("claims of papers that these data support", claims,
      [](const Statement& c) { return c.joint() == Verdict::supported; });
  return out;
}

/// The row as a sentence.
std::string row_text(const CheckRow& row) {
  return fmt::format("{} on {}: {}", row.part.empty() ? row.check : row.part, subject_text(row), row.text);
}

std::vector<std::string> faults_of(const Statements& statements) {
  std::vector<std::string> out;
  for (const Statement& check : statements) {
    for (const CheckRow* row : check.rows) {
      if (is_fault(*row)) out.push_back(fmt::format("{}: {}", row->check, row_text(*row)));
    }
  }
  return out;
}

/// One sentence per claim, with the first of the rows that contradict it.
std::vector<std::string> contradicted(const Statements& claims) {
  std::vector<std::string> out;
  for (const Statement& check : claims) {
    const auto first = std::ranges::find(check.rows, Verdict::contradicted, &CheckRow::verdict);
    if (first == check.rows.end()) continue;
    out.push_back(fmt::format("{}: {} of {} rows, first {}", check.id(), check.count(Verdict::contradicted),
                              check.rows.size(), row_text(**first)));
  }
  return out;
}

/// What would decide the rows of a claim that are undecided; the median over them.
std::string remedy(const Statement& check) {
  constexpr double too_many = 100;
  std::vector<double> needed;
  Index units = 0;
  std::string places;
  for (const CheckRow* row : check.rows) {
    if (row->verdict != Verdict::undecided) continue;
    units = std::max(units, row->units);
    if (!row->over_places.empty()) places = row->over_places;
    if (!std::isnan(row->units_needed)) needed.push_back(row->units_needed);
  }
  if (!places.empty()) return "more layers or texts than " + places + ", or a larger effect";
  if (needed.empty())
    return units > 0 ? fmt::format("more than {} independent units", units) : "more independent units";
  const double median = quantile(needed, 0.5);
  if (median > too_many * static_cast<double>(std::max<Index>(1, units)))
    return "a larger effect: the measured one is nearly 0";
  return fmt::format("about {:.0f} independent units in place of {}, at the measured effect", median, units);
}

std::vector<std::string> undecided(const Statements& claims) {
  std::vector<std::string> out;
  for (const Statement& check : claims) {
    if (check.has(Verdict::undecided)) {
      out.push_back(fmt::format("{}: {} of {} rows undecided; it would take {}", check.id(),
                                check.count(Verdict::undecided), check.rows.size(), remedy(check)));
    }
    const auto untestable = std::ranges::find(check.rows, Verdict::untestable, &CheckRow::verdict);
    if (untestable == check.rows.end()) continue;
    out.push_back(fmt::format("{}: {} of {} rows untestable: {}", check.id(), check.count(Verdict::untestable),
                              check.rows.size(), (*untestable)->text));
  }
  return out;
}

std::string failures_text(const CheckRow& r) {
  return r.failures && r.trials ? fmt::format("{}/{}", *r.failures, *r.trials) : "-";
}

}  // namespace

std::vector<Section> check_sections(std::span<const CsvTable* const> tables) {
  if (tables.empty()) return {};
  std::vector<CheckRow> rows;
  for (const CsvTable* table : tables) std::ranges::move(rows_of(*table), std::back_inserter(rows));
  Section out{.title = "Bounds and claims"};
  out.blocks = {
      verdicts_of(rows),
      Paragraph{
          "Each statement was tested on every subject (a kv head, a stream, or the whole trace). Claims of papers are "
          "tested in both directions: supported or contradicted where one is significant at 5 %, else undecided; "
          "untestable where there are no data. Theorems, identities and costs are violated (a fault) where the data "
          "refute them; otherwise they hold, with margin where the interval of the failure probability lies below the "
          "allowed one; they are vacuous where the bound says no more than the trivial one."}};
  for (const bool claims : {true, false}) {
    DocTable counts = count_table(rows, claims);
    counts.title = claims ? "Claims of papers: number of tests by verdict"
                          : "Theorems, identities and costs: number of rows by verdict";
    append_filled(out.blocks, std::move(counts));
  }
  for (const bool findings : {false, true}) append_filled(out.blocks, refuted_table(rows, findings));
  append_filled(out.blocks, undecided_table(rows));
  out.blocks.emplace_back(bound_table(rows));
  append_filled(out.blocks, untested_table(rows));
  return {out};
}

std::vector<Block> check_summary(std::span<const CheckRow> rows) {
  std::vector<Block> blocks;
  for (const bool claims : {false, true}) append_filled(blocks, count_table(rows, claims));
  append(blocks, check_findings(rows));
  return blocks;
}

std::vector<Block> check_findings(std::span<const CheckRow> rows) {
  const Statements statements = by_check(rows, false), claims = by_check(rows, true);
  std::vector<std::string> faults = faults_of(statements);
  std::vector<Block> blocks;
  if (faults.empty() && !statements.empty()) blocks.emplace_back(AnswerBlock{"", {"No fault was found."}});
  for (AnswerBlock answer : {AnswerBlock{"Violated: the code or the paper is wrong", std::move(faults)},
                             AnswerBlock{"What holds", holding(statements, claims)},
                             AnswerBlock{"What is contradicted here", contradicted(claims)},
                             AnswerBlock{"What could not be decided, and what it would take", undecided(claims)}}) {
    append_filled(blocks, std::move(answer));
  }
  return blocks;
}

std::vector<Block> every_check(std::span<const CheckRow> rows) {
  const auto number = [](double CheckRow::*of) { return [of](const CheckRow& r) { return short_number(r.*of); }; };
  std::vector<Block> blocks = {filled<CheckRow>({},
                                                {{{"claim"}, &CheckRow::check},
                                                 {{"part"}, &CheckRow::part},
                                                 {{"on"}, subject_text},
                                                 {{"literal", true}, number(&CheckRow::literal)},
                                                 {{"tight", true}, number(&CheckRow::tight)},
                                                 {{"data", true}, number(&CheckRow::data)},
                                                 {{"measured", true}, number(&CheckRow::measured)},
                                                 {{"q99", true}, number(&CheckRow::measured_q99)},
                                                 {{"failures", true}, failures_text},
                                                 {{"verdict"}, &CheckRow::verdict}},
                                                rows)};
  append(blocks, check_findings(rows));
  return blocks;
}

}  // namespace kvbench::report
