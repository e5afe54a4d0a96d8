// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <kvbench/report/claims/sections.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

/// The rows of one check that have verdicts of one kind.
struct RowsOfCheck {
  std::string id;
  std::vector<const evidence::CheckRow*> rows;
  Index count(Verdict verdict) const {
    return std::ranges::count_if(rows, [&](const evidence::CheckRow* row) { return row->verdict == verdict; });
  }
  bool has(Verdict verdict) const { return count(verdict) > 0; }
};

/// By id, in the order of the rows; rows of claims of papers, or all others with a verdict.
std::vector<RowsOfCheck> by_check(std::span<const evidence::CheckRow> rows, bool claims) {
  std::vector<RowsOfCheck> all;
  for (const evidence::CheckRow& row : rows) {
    if (row.verdict == Verdict::none || (row.kind == evidence::CheckKind::claim) != claims) continue;
    const auto known = std::ranges::find(all, row.check, &RowsOfCheck::id);
    (known == all.end() ? all.emplace_back(RowsOfCheck{.id = row.check}) : *known).rows.push_back(&row);
  }
  return all;
}

Verdict joint(const RowsOfCheck& check) {
  std::vector<Verdict> verdicts;
  for (const evidence::CheckRow* row : check.rows) verdicts.push_back(row->verdict);
  return joint_verdict(verdicts);
}

/// None where no row has such a verdict.
std::vector<Block> count_table(std::span<const evidence::CheckRow> rows, bool claims) {
  const std::vector<RowsOfCheck> ids = by_check(rows, claims);
  if (ids.empty()) return {};
  DocTable table{.columns = {{claims ? "claim of a paper" : "theorem, identity or cost"}}};
  const std::span<const Verdict> columns = claims ? std::span<const Verdict>(claim_verdicts) : statement_verdicts;
  for (const Verdict verdict : columns) table.columns.push_back({std::string(name_of(verdict)), true});
  if (claims) table.columns.push_back({"verdict"});
  for (const RowsOfCheck& id : ids) {
    auto& cells = table.rows.emplace_back(std::vector<TableCell>{id.id});
    for (const Verdict verdict : columns) cells.emplace_back(fmt::format("{}", id.count(verdict)));
    if (claims) cells.emplace_back(std::string(name_of(joint(id))));
  }
  return {std::move(table)};
}

/// Adds "TITLE: id, id, ...", unless there is none.
void add_ids(const std::string& title, const std::vector<RowsOfCheck>& checks, const auto& belongs,
             std::vector<std::string>& sentences) {
  std::vector<std::string> ids;
  for (const RowsOfCheck& check : checks) {
    if (belongs(check)) ids.push_back(check.id);
  }
  if (!ids.empty()) sentences.push_back(fmt::format("{}: {}", title, fmt::join(ids, ", ")));
}

std::vector<std::string> holding(const std::vector<RowsOfCheck>& statements, const std::vector<RowsOfCheck>& claims) {
  const auto violated = [](const RowsOfCheck& c) { return c.has(Verdict::violated); };
  const auto holds = [&](const RowsOfCheck& c) {
    return !violated(c) && (c.has(Verdict::holds) || c.has(Verdict::holds_with_margin));
  };
  const auto vacuous = [](const RowsOfCheck& c) { return c.has(Verdict::vacuous); };
  std::vector<std::string> out;
  add_ids(
      "hold on every subject with a verdict", statements, [&](const RowsOfCheck& c) { return holds(c) && !vacuous(c); },
      out);
  add_ids(
      "hold, but on some subjects the bound says no more than the trivial one", statements,
      [&](const RowsOfCheck& c) { return holds(c) && vacuous(c); }, out);
  add_ids(
      "say no more than the trivial bound on any subject", statements,
      [&](const RowsOfCheck& c) { return !violated(c) && !holds(c) && vacuous(c); }, out);
  add_ids(
      "do not apply to any subject", statements,
      [&](const RowsOfCheck& c) { return !violated(c) && !holds(c) && !vacuous(c); }, out);
  add_ids(
      "claims of papers that these data support", claims,
      [](const RowsOfCheck& c) { return joint(c) == Verdict::supported; }, out);
  return out;
}

/// The row as a sentence.
std::string row_text(const evidence::CheckRow& row) {
  return fmt::format("{} on {}: {}", row.part.empty() ? row.check : row.part, subject_text(row), row.text);
}

std::vector<std::string> faults_of(const std::vector<RowsOfCheck>& statements) {
  std::vector<std::string> out;
  for (const RowsOfCheck& check : statements) {
    for (const evidence::CheckRow* row : check.rows) {
      if (is_fault(*row)) out.push_back(fmt::format("{}: {}", row->check, row_text(*row)));
    }
  }
  return out;
}

/// One sentence per claim, with the first of the rows that contradict it.
std::vector<std::string> contradicted(const std::vector<RowsOfCheck>& claims) {
  std::vector<std::string> out;
  for (const RowsOfCheck& check : claims) {
    const auto first = std::ranges::find(check.rows, Verdict::contradicted, &evidence::CheckRow::verdict);
    if (first == check.rows.end()) continue;
    out.push_back(fmt::format("{}: {} of {} rows, first {}", check.id, check.count(Verdict::contradicted),
                              check.rows.size(), row_text(**first)));
  }
  return out;
}

/// What would decide the rows of a claim that are undecided; the median over them.
std::string remedy(const RowsOfCheck& check) {
  constexpr double too_many = 100;
  std::vector<double> needed;
  Index units = 0;
  std::string places;
  for (const evidence::CheckRow* row : check.rows) {
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

std::vector<std::string> undecided(const std::vector<RowsOfCheck>& claims) {
  std::vector<std::string> out;
  for (const RowsOfCheck& check : claims) {
    if (check.has(Verdict::undecided)) {
      out.push_back(fmt::format("{}: {} of {} rows undecided; it would take {}", check.id,
                                check.count(Verdict::undecided), check.rows.size(), remedy(check)));
    }
    const auto untestable = std::ranges::find(check.rows, Verdict::untestable, &evidence::CheckRow::verdict);
    if (untestable == check.rows.end()) continue;
    out.push_back(fmt::format("{}: {} of {} rows untestable: {}", check.id, check.count(Verdict::untestable),
                              check.rows.size(), (*untestable)->text));
  }
  return out;
}

}  // namespace

std::vector<Block> check_summary(std::span<const evidence::CheckRow> rows) {
  std::vector<Block> blocks = count_table(rows, false);
  std::ranges::move(count_table(rows, true), std::back_inserter(blocks));
  std::ranges::move(check_findings(rows), std::back_inserter(blocks));
  return blocks;
}

std::vector<Block> check_findings(std::span<const evidence::CheckRow> rows) {
  const std::vector<RowsOfCheck> statements = by_check(rows, false), claims = by_check(rows, true);
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

namespace {

std::string failures_text(const evidence::CheckRow& r) {
  return r.failures && r.trials ? fmt::format("{}/{}", *r.failures, *r.trials) : "-";
}

}  // namespace

std::vector<Block> every_check(std::span<const evidence::CheckRow> rows) {
  DocTable table{.columns = {{"claim"},
                             {"part"},
                             {"on"},
                             {"literal", true},
                             {"tight", true},
                             {"data", true},
                             {"measured", true},
                             {"q99", true},
                             {"failures", true},
                             {"verdict"}}};
  for (const evidence::CheckRow& r : rows) {
    auto& cells = table.rows.emplace_back(std::vector<TableCell>{r.check, r.part, subject_text(r)});
    for (const double value : {r.literal, r.tight, r.data, r.measured, r.measured_q99})
      cells.emplace_back(short_number(value));
    cells.emplace_back(failures_text(r));
    cells.emplace_back(std::string(name_of(r.verdict)));
  }
  std::vector<Block> blocks = {std::move(table)};
  std::ranges::move(check_findings(rows), std::back_inserter(blocks));
  return blocks;
}

}  // namespace kvbench::report
