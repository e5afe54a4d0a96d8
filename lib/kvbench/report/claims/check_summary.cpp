// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/claims/check_summary.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/ranges.h>

#include <kvbench/bounds/check/verdicts.hpp>
#include <kvbench/report/columns/checks.hpp>

namespace kvbench::report {
namespace {

/// The rows of one check that have verdicts of one kind.
struct RowsOfCheck {
  std::string id;
  std::vector<const bounds::CheckRow*> rows;
  Index count(Verdict verdict) const {
    return std::ranges::count_if(rows, [&](const bounds::CheckRow* row) { return row->verdict == verdict; });
  }
  bool has(Verdict verdict) const { return count(verdict) > 0; }
};

/// By id, in the order of the rows; rows of claims of papers, or all others with a verdict.
std::vector<RowsOfCheck> by_check(std::span<const bounds::CheckRow> rows, bool claims) {
  std::vector<RowsOfCheck> all;
  for (const bounds::CheckRow& row : rows) {
    if (row.verdict == Verdict::none || (row.kind == bounds::CheckKind::claim) != claims) continue;
    const auto known = std::ranges::find(all, row.check, &RowsOfCheck::id);
    (known == all.end() ? all.emplace_back(RowsOfCheck{.id = row.check, .rows = {}}) : *known).rows.push_back(&row);
  }
  return all;
}

Verdict joint(const RowsOfCheck& check) {
  std::vector<Verdict> verdicts;
  for (const bounds::CheckRow* row : check.rows) verdicts.push_back(row->verdict);
  return joint_verdict(verdicts);
}

std::string count_table(std::span<const bounds::CheckRow> rows, bool claims) {
  const std::vector<RowsOfCheck> ids = by_check(rows, claims);
  if (ids.empty()) return "";
  TextRows lines = {{claims ? "claim of a paper" : "theorem, identity or cost"}};
  const std::span<const Verdict> columns = claims ? std::span<const Verdict>(claim_verdicts) : statement_verdicts;
  for (const Verdict verdict : columns) lines[0].emplace_back(name_of(verdict));
  if (claims) lines[0].emplace_back("verdict");
  for (const RowsOfCheck& id : ids) {
    lines.push_back({id.id});
    for (const Verdict verdict : columns) lines.back().push_back(fmt::format("{}", id.count(verdict)));
    if (claims) lines.back().emplace_back(name_of(joint(id)));
  }
  return aligned_rows(lines, [](std::size_t column) { return column == 0; }) + "\n";
}

/// "  TITLE: id, id, ..." in lines of at most 110 characters; "" without ids.
std::string id_list(const std::string& title, const std::vector<RowsOfCheck>& claims, const auto& belongs) {
  std::string out, line = "  " + title + ":";
  bool any = false;
  for (const RowsOfCheck& check : claims) {
    if (!belongs(check)) continue;
    const std::string word = (any ? ", " : " ") + check.id;
    if (any && line.size() + word.size() > 110) {
      out += line + ",\n";
      line = "      " + check.id;
    } else {
      line += word;
    }
    any = true;
  }
  return any ? out + line + "\n" : "";
}

std::string holding_text(const std::vector<RowsOfCheck>& statements, const std::vector<RowsOfCheck>& claims) {
  const auto violated = [](const RowsOfCheck& c) { return c.has(Verdict::violated); };
  const auto holds = [&](const RowsOfCheck& c) {
    return !violated(c) && (c.has(Verdict::holds) || c.has(Verdict::holds_with_margin));
  };
  std::string out = id_list("hold on every subject with a verdict", statements,
                            [&](const RowsOfCheck& c) { return holds(c) && !c.has(Verdict::vacuous); });
  out += id_list("hold, but on some subjects the bound says no more than the trivial one", statements,
                 [&](const RowsOfCheck& c) { return holds(c) && c.has(Verdict::vacuous); });
  out += id_list("say no more than the trivial bound on any subject", statements,
                 [&](const RowsOfCheck& c) { return !violated(c) && !holds(c) && c.has(Verdict::vacuous); });
  out += id_list("do not apply to any subject", statements,
                 [&](const RowsOfCheck& c) { return !violated(c) && !holds(c) && !c.has(Verdict::vacuous); });
  return out + id_list("claims of papers that these data support", claims,
                       [](const RowsOfCheck& c) { return joint(c) == Verdict::supported; });
}

/// The row as a sentence.
std::string row_text(const bounds::CheckRow& row) {
  return fmt::format("{} on {}: {}", row.part.empty() ? row.check : row.part, subject_text(row), row.text);
}

std::string fault_text(const std::vector<RowsOfCheck>& statements) {
  std::string out;
  for (const RowsOfCheck& check : statements) {
    for (const bounds::CheckRow* row : check.rows) {
      if (is_fault(*row)) out += fmt::format("  {}: {}\n", row->check, row_text(*row));
    }
  }
  return out;
}

/// One line per claim, with the first of the rows that contradict it.
std::string contradicted_text(const std::vector<RowsOfCheck>& claims) {
  std::string out;
  for (const RowsOfCheck& check : claims) {
    const auto first = std::ranges::find(check.rows, Verdict::contradicted, &bounds::CheckRow::verdict);
    if (first == check.rows.end()) continue;
    out += fmt::format("  {}: {} of {} rows, first {}\n", check.id, check.count(Verdict::contradicted),
                       check.rows.size(), row_text(**first));
  }
  return out;
}

/// What would decide the rows of a claim that are undecided; the median over them.
std::string remedy(const RowsOfCheck& check) {
  constexpr double too_many = 100;
  std::vector<double> needed;
  Index units = 0;
  std::string places;
  for (const bounds::CheckRow* row : check.rows) {
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

std::string undecided_text(const std::vector<RowsOfCheck>& claims) {
  std::string out;
  for (const RowsOfCheck& check : claims) {
    if (check.has(Verdict::undecided)) {
      out += fmt::format("  {}: {} of {} rows undecided; it would take {}\n", check.id, check.count(Verdict::undecided),
                         check.rows.size(), remedy(check));
    }
    const auto untestable = std::ranges::find(check.rows, Verdict::untestable, &bounds::CheckRow::verdict);
    if (untestable == check.rows.end()) continue;
    out += fmt::format("  {}: {} of {} rows untestable: {}\n", check.id, check.count(Verdict::untestable),
                       check.rows.size(), (*untestable)->text);
  }
  return out;
}

std::string section(const std::string& title, const std::string& text) {
  return text.empty() ? "" : title + "\n" + text;
}

}  // namespace

std::string check_summary(std::span<const bounds::CheckRow> rows) {
  return count_table(rows, false) + count_table(rows, true) + check_findings(rows);
}

std::string check_findings(std::span<const bounds::CheckRow> rows) {
  const std::vector<RowsOfCheck> statements = by_check(rows, false), claims = by_check(rows, true);
  const std::string faults = fault_text(statements);
  const std::string first = faults.empty() && !statements.empty() ? "No fault was found.\n" : "";
  return first + section("Violated: the code or the paper is wrong", faults) +
         section("What holds", holding_text(statements, claims)) +
         section("What is contradicted here", contradicted_text(claims)) +
         section("What could not be decided, and what it would take", undecided_text(claims));
}

}  // namespace kvbench::report
