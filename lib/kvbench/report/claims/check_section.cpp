// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/claims/sections.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

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

/// Rows of one statement, one per subject.
struct Statement {
  std::vector<CheckRow> rows;
  const CheckRow& first() const { return rows.front(); }
};

/// Rows with the same key, in order of appearance.
template <class Key>
std::vector<Statement> grouped(const std::vector<CheckRow>& rows, Key key) {
  OrderedMap<decltype(key(rows.front())), Statement> groups;
  for (const CheckRow& row : rows) groups[key(row)].rows.push_back(row);
  std::vector<Statement> out;
  for (auto& [of_group, group] : groups.items()) out.push_back(std::move(group));
  return out;
}
std::vector<Statement> by_part(const std::vector<CheckRow>& rows) {
  return grouped(rows, [](const CheckRow& r) { return std::tuple(r.check, r.part); });
}

bool is_bad(Verdict verdict) { return verdict == Verdict::violated || verdict == Verdict::contradicted; }

std::size_t count_verdict(const Statement& group, Verdict verdict) {
  return static_cast<std::size_t>(std::ranges::count(group.rows, verdict, &CheckRow::verdict));
}

/// "0.12", or "0.1 … 0.3" over the subjects.
template <class Number>
std::string range_in_group(const Statement& group, Number number, std::string (*text_of)(double) = three_digits) {
  double lo = NAN, hi = NAN;
  for (const CheckRow& row : group.rows) {
    lo = std::fmin(lo, std::invoke(number, row));
    hi = std::fmax(hi, std::invoke(number, row));
  }
  if (std::isnan(lo)) return "";
  const std::string a = text_of(lo), b = text_of(hi);
  return a == b ? a : a + " … " + b;
}

std::string failures_in_group(const Statement& group) {
  std::int64_t failed = 0, trials = 0;
  for (const CheckRow& row : group.rows) {
    if (row.failures && row.trials) failed += *row.failures, trials += *row.trials;
  }
  return trials > 0 ? fmt::format("{} of {}", failed, trials) : "";
}

std::string smallest_in_group(const Statement& group, double CheckRow::*number) {
  double lo = NAN;
  for (const CheckRow& row : group.rows) lo = std::fmin(lo, row.*number);
  return std::isnan(lo) ? "" : three_digits(lo);
}

TableCell verdict_cell(const Statement& group) {
  std::string out;
  for (const Verdict verdict : verdicts_of(group.first())) {
    const std::size_t n = count_verdict(group, verdict);
    if (n > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", n, name_of(verdict));
  }
  if (std::ranges::any_of(group.rows, is_bad, &CheckRow::verdict)) return {out, Tone::bad};
  const bool good = std::ranges::any_of(
      group.rows, [](const CheckRow& r) { return holds(r.verdict) || r.verdict == Verdict::supported; });
  return {out, good ? Tone::plain : Tone::dim};
}

std::string subject_of(const CheckRow& r) {
  std::string out = r.source;
  if (r.layer) out += fmt::format(", prompt {}, layer {}, kv head {}", r.prompt, *r.layer, r.kv_head.value_or(0));
  return out.empty() ? "-" : out;
}

/// Rows per verdict of each id, for claims of papers or for all other statements.
DocTable count_table(const std::vector<CheckRow>& rows, bool claims) {
  DocTable table{.title = claims ? "Claims of papers: number of tests by verdict"
                                 : "Theorems, identities and costs: number of rows by verdict",
                 .columns = {{"claim"}}};
  const Verdicts verdicts = claims ? Verdicts(claim_verdicts) : statement_verdicts;
  for (const Verdict verdict : verdicts) table.columns.push_back({std::string(name_of(verdict)), true});
  for (const Statement& group : grouped(rows, [](const CheckRow& r) { return r.check; })) {
    std::vector<TableCell> cells = {group.first().check};
    for (const Verdict verdict : verdicts) {
      const std::size_t n = count_verdict(group, verdict);
      cells.emplace_back(fmt::format("{}", n), n == 0 ? Tone::dim : is_bad(verdict) ? Tone::bad : Tone::plain);
    }
    table.rows.push_back(std::move(cells));
  }
  return table;
}

DocTable bound_table(const std::vector<CheckRow>& rows) {
  DocTable table{.title = "Bounds and measured values (smallest … largest over the subjects)",
                 .columns = {{"claim"}, {"statement", false, true}, {"kind"}, {"rows", true}, {"verdict"}},
                 .merged = 1};
  const std::pair<const char*, double CheckRow::*> numbers[] = {{"measured", &CheckRow::measured},
                                                                {"99 % quantile", &CheckRow::measured_q99},
                                                                {"bound: paper's constants", &CheckRow::literal},
                                                                {"bound: tight", &CheckRow::tight},
                                                                {"bound: from data", &CheckRow::data},
                                                                {"trivial bound", &CheckRow::trivial},
                                                                {"failures allowed", &CheckRow::allowed}};
  for (const auto& [title, number] : numbers) {
    const bool printed = number == &CheckRow::measured || number == &CheckRow::literal;
    table.columns.push_back({title, true, false, !printed});
  }
  table.columns.push_back({"failures", true});
  table.columns.push_back({"smallest adjusted p", true, false, true});
  for (const Statement& g : grouped(rows, [](const CheckRow& r) { return std::tuple(r.check, r.part, r.kind); })) {
    std::vector<TableCell> cells = {g.first().check, g.first().part, std::string(name_of(g.first().kind)),
                                    fmt::format("{}", g.rows.size()), verdict_cell(g)};
    for (const auto& [title, number] : numbers) cells.emplace_back(range_in_group(g, number));
    cells.emplace_back(failures_in_group(g));
    cells.emplace_back(smallest_in_group(g, &CheckRow::p_adjusted));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

/// Faults or findings, one row per statement, with the first of its subjects.
DocTable refuted_table(const std::vector<CheckRow>& rows, bool findings) {
  DocTable table{.title = findings ? "Findings: claims of papers that the data contradict"
                                   : "Faults: statements that must hold but do not",
                 .columns = {{"claim"},
                             {"statement", false, true},
                             {"subjects", true},
                             {"first subject", false, true, true},
                             {"values", false, true}},
                 .merged = 1};
  std::vector<CheckRow> bad;
  std::ranges::copy_if(rows, std::back_inserter(bad), [&](const CheckRow& r) {
    return r.verdict == (findings ? Verdict::contradicted : Verdict::violated);
  });
  for (const Statement& g : by_part(bad))
    table.rows.push_back(
        {g.first().check, g.first().part, fmt::format("{}", g.rows.size()), subject_of(g.first()), g.first().text});
  return table;
}

double units(const CheckRow& row) { return row.units > 0 ? static_cast<double>(row.units) : NAN; }

DocTable undecided_table(const std::vector<CheckRow>& rows) {
  DocTable table{.title = "Claims that could not be decided, and the units that it would take at the measured effect",
                 .columns = {{"claim"},
                             {"statement", false, true},
                             {"rows", true},
                             {"units", true},
                             {"units needed", true},
                             {"smallest p", true},
                             {"by Holm", true},
                             {"values of the first", false, true}},
                 .merged = 1};
  std::vector<CheckRow> undecided;
  std::ranges::copy_if(rows, std::back_inserter(undecided),
                       [](const CheckRow& r) { return r.verdict == Verdict::undecided; });
  for (const Statement& g : by_part(undecided))
    table.rows.push_back(
        {g.first().check, g.first().part, fmt::format("{}", g.rows.size()), range_in_group(g, units, short_number),
         range_in_group(g, &CheckRow::units_needed, short_number), smallest_in_group(g, &CheckRow::p_value),
         smallest_in_group(g, &CheckRow::p_adjusted), g.first().text});
  return table;
}

DocTable untested_table(const std::vector<CheckRow>& rows) {
  DocTable table{.title = "Statements that could not be tested",
                 .columns = {{"claim"}, {"statement", false, true}, {"rows", true}, {"reason", false, true}},
                 .folded = true,
                 .merged = 1};
  std::vector<CheckRow> untested;
  std::ranges::copy_if(rows, std::back_inserter(untested), [](const CheckRow& r) {
    return r.verdict == Verdict::not_applicable || r.verdict == Verdict::untestable;
  });
  for (const Statement& g : grouped(untested, [](const CheckRow& r) { return std::tuple(r.check, r.part, r.text); })) {
    table.rows.push_back({g.first().check, g.first().part, fmt::format("{}", g.rows.size()),
                          g.first().text.empty() ? g.first().assumptions_text : g.first().text});
  }
  return table;
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
std::string claim_text(const std::string& id, const std::vector<Verdict>& verdicts, Verdict counted) {
  const auto count = std::ranges::count(verdicts, counted);
  if (count == std::ssize(verdicts) || (counted == Verdict::supported && count == 0)) return id;
  return fmt::format("{} ({} in {} of {} tests)", id, name_of(counted), count, verdicts.size());
}

/// The verdicts of the statements and of the claims, by the ids of both.
AnswerBlock verdicts_of(const std::vector<CheckRow>& rows) {
  OrderedMap<std::pair<bool, std::string>, std::vector<Verdict>> by_id;
  for (const CheckRow& row : rows) {
    if (row.kind != CheckKind::data) by_id[{row.kind == CheckKind::claim, row.check}].push_back(row.verdict);
  }
  std::vector<std::string> violated, holding, weak, supported, contradicted, open;
  for (const auto& [id, verdicts] : by_id.items()) {
    const auto any = [&all = verdicts](auto of) { return std::ranges::any_of(all, of); };
    const Verdict joint = joint_verdict(verdicts);
    std::vector<std::string>& statements = any([](Verdict v) { return v == Verdict::violated; }) ? violated
                                           : any(holds)                                          ? holding
                                                                                                 : weak;
    std::vector<std::string>& claims = joint == Verdict::supported      ? supported
                                       : joint == Verdict::contradicted ? contradicted
                                                                        : open;
    const Verdict counted = joint == Verdict::contradicted ? Verdict::contradicted : Verdict::supported;
    (id.first ? claims : statements).push_back(id.first ? claim_text(id.second, verdicts, counted) : id.second);
  }
  AnswerBlock answer{"What these data say", {}};
  const auto add = [&](const char* what, const std::vector<std::string>& ids) {
    if (!ids.empty()) answer.sentences.push_back(fmt::format("{}: {}.", what, fmt::join(ids, ", ")));
  };
  if (violated.empty() && holding.size() + weak.size() > 0) answer.sentences.push_back("No fault was found.");
  add("Violated, so that the code or the paper is wrong", violated);
  add("Hold on every subject with a verdict", holding);
  add("Say no more than the trivial bound, or do not apply", weak);
  add("Claims of papers that these data support", supported);
  add("Claims of papers that these data contradict", contradicted);
  add("Claims of papers that these data do not decide", open);
  return answer;
}

}  // namespace

std::vector<Block> check_blocks(std::span<const CsvTable* const> tables) {
  std::vector<CheckRow> rows;
  for (const CsvTable* table : tables) std::ranges::move(rows_of(*table), std::back_inserter(rows));
  std::vector<Block> blocks = {
      Heading{2, "Bounds and claims"}, verdicts_of(rows),
      Paragraph{
          "Each statement was tested on every subject (a kv head, a stream, or the whole trace). Claims of papers are "
          "tested in both directions: supported or contradicted where one is significant at 5 %, else undecided; "
          "untestable where there are no data. Theorems, identities and costs are violated (a fault) where the data "
          "refute them; otherwise they hold, with margin where the interval of the failure probability lies below the "
          "allowed one; they are vacuous where the bound says no more than the trivial one."}};
  for (const bool claims : {true, false}) {
    std::vector<CheckRow> part;
    std::ranges::copy_if(rows, std::back_inserter(part), [&](const CheckRow& r) {
      return (r.kind == CheckKind::claim) == claims && r.kind != CheckKind::data;
    });
    if (!part.empty()) blocks.emplace_back(count_table(part, claims));
  }
  for (const bool findings : {false, true}) {
    append_filled(blocks, refuted_table(rows, findings));
  }
  append_filled(blocks, compact(undecided_table(rows)));
  blocks.emplace_back(compact(bound_table(rows)));
  append_filled(blocks, untested_table(rows));
  return blocks;
}

}  // namespace kvbench::report
