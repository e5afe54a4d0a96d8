// SPDX-License-Identifier: Apache-2.0
// The page at the end of `kvbench validate`: verdicts per claim, then what a reader concludes from them.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/ranges.h>

#include <kvbench/report/check_table.hpp>

namespace kvbench {
namespace {

constexpr std::array statement_verdicts = {Verdict::holds_with_margin, Verdict::holds, Verdict::violated,
                                           Verdict::vacuous, Verdict::not_applicable};
constexpr std::array claim_verdicts = {Verdict::supported, Verdict::contradicted, Verdict::undecided,
                                       Verdict::untestable};

/// The rows of one claim that have verdicts of one kind.
struct ClaimRows {
  std::string id;
  std::vector<const CheckRow*> rows;
  Index count(Verdict verdict) const {
    return std::ranges::count_if(rows, [&](const CheckRow* row) { return row->verdict == verdict; });
  }
  bool has(Verdict verdict) const { return count(verdict) > 0; }
};

/// By id, in the order of the rows; rows of claims of papers, or all others with a verdict.
std::vector<ClaimRows> by_claim(std::span<const CheckRow> rows, bool claims) {
  std::vector<ClaimRows> all;
  for (const CheckRow& row : rows) {
    if (row.verdict == Verdict::none || (row.kind == CheckKind::claim) != claims) continue;
    const auto known = std::ranges::find(all, row.claim, &ClaimRows::id);
    (known == all.end() ? all.emplace_back(ClaimRows{.id = row.claim, .rows = {}}) : *known).rows.push_back(&row);
  }
  return all;
}

Verdict joint(const ClaimRows& claim) {
  std::vector<Verdict> verdicts;
  for (const CheckRow* row : claim.rows) verdicts.push_back(row->verdict);
  return joint_verdict(verdicts);
}

std::string count_table(std::span<const CheckRow> rows, bool claims) {
  const std::vector<ClaimRows> ids = by_claim(rows, claims);
  if (ids.empty()) return "";
  TextRows lines = {{claims ? "claim of a paper" : "theorem, identity or cost"}};
  const std::span<const Verdict> columns = claims ? std::span<const Verdict>(claim_verdicts) : statement_verdicts;
  for (const Verdict verdict : columns) lines[0].emplace_back(name_of(verdict));
  if (claims) lines[0].emplace_back("verdict");
  for (const ClaimRows& id : ids) {
    lines.push_back({id.id});
    for (const Verdict verdict : columns) lines.back().push_back(fmt::format("{}", id.count(verdict)));
    if (claims) lines.back().emplace_back(name_of(joint(id)));
  }
  return aligned_rows(lines, [](std::size_t column) { return column == 0; }) + "\n";
}

/// "  TITLE: id, id, ..." in lines of at most 110 characters; "" without ids.
std::string id_list(const std::string& title, const std::vector<ClaimRows>& claims, const auto& belongs) {
  std::string out, line = "  " + title + ":";
  bool any = false;
  for (const ClaimRows& claim : claims) {
    if (!belongs(claim)) continue;
    const std::string word = (any ? ", " : " ") + claim.id;
    if (any && line.size() + word.size() > 110) {
      out += line + ",\n";
      line = "      " + claim.id;
    } else {
      line += word;
    }
    any = true;
  }
  return any ? out + line + "\n" : "";
}

std::string holding_text(const std::vector<ClaimRows>& statements, const std::vector<ClaimRows>& claims) {
  const auto violated = [](const ClaimRows& c) { return c.has(Verdict::violated); };
  const auto holds = [&](const ClaimRows& c) {
    return !violated(c) && (c.has(Verdict::holds) || c.has(Verdict::holds_with_margin));
  };
  std::string out = id_list("hold on every subject with a verdict", statements,
                            [&](const ClaimRows& c) { return holds(c) && !c.has(Verdict::vacuous); });
  out += id_list("hold, but on some subjects the bound says no more than the trivial one", statements,
                 [&](const ClaimRows& c) { return holds(c) && c.has(Verdict::vacuous); });
  out += id_list("say no more than the trivial bound on any subject", statements,
                 [&](const ClaimRows& c) { return !violated(c) && !holds(c) && c.has(Verdict::vacuous); });
  out += id_list("do not apply to any subject", statements,
                 [&](const ClaimRows& c) { return !violated(c) && !holds(c) && !c.has(Verdict::vacuous); });
  return out + id_list("claims of papers that these data support", claims,
                       [](const ClaimRows& c) { return joint(c) == Verdict::supported; });
}

/// The row as a sentence.
std::string row_text(const CheckRow& row) {
  return fmt::format("{} on {}: {}", row.part.empty() ? row.claim : row.part, subject_text(row), row.text);
}

std::string fault_text(const std::vector<ClaimRows>& statements) {
  std::string out;
  for (const ClaimRows& claim : statements) {
    for (const CheckRow* row : claim.rows) {
      if (is_fault(*row)) out += fmt::format("  {}: {}\n", row->claim, row_text(*row));
    }
  }
  return out;
}

/// One line per claim, with the first of the rows that contradict it.
std::string contradicted_text(const std::vector<ClaimRows>& claims) {
  std::string out;
  for (const ClaimRows& claim : claims) {
    const auto first = std::ranges::find(claim.rows, Verdict::contradicted, &CheckRow::verdict);
    if (first == claim.rows.end()) continue;
    out += fmt::format("  {}: {} of {} rows, first {}\n", claim.id, claim.count(Verdict::contradicted),
                       claim.rows.size(), row_text(**first));
  }
  return out;
}

/// What would decide the rows of a claim that are undecided; the median over them.
std::string remedy(const ClaimRows& claim) {
  constexpr double too_many = 100;
  std::vector<double> needed;
  Index units = 0;
  for (const CheckRow* row : claim.rows) {
    if (row->verdict != Verdict::undecided) continue;
    units = std::max(units, row->units);
    if (!std::isnan(row->units_needed)) needed.push_back(row->units_needed);
  }
  if (needed.empty())
    return units > 0 ? fmt::format("more than {} independent units", units) : "more independent units";
  const double median = quantile(needed, 0.5);
  if (median > too_many * static_cast<double>(std::max<Index>(1, units)))
    return "a larger effect: the measured one is nearly 0";
  return fmt::format("about {:.0f} independent units in place of {}, at the measured effect", median, units);
}

std::string undecided_text(const std::vector<ClaimRows>& claims) {
  std::string out;
  for (const ClaimRows& claim : claims) {
    if (claim.has(Verdict::undecided)) {
      out += fmt::format("  {}: {} of {} rows undecided; it would take {}\n", claim.id, claim.count(Verdict::undecided),
                         claim.rows.size(), remedy(claim));
    }
    const auto untestable = std::ranges::find(claim.rows, Verdict::untestable, &CheckRow::verdict);
    if (untestable == claim.rows.end()) continue;
    out += fmt::format("  {}: {} of {} rows untestable: {}\n", claim.id, claim.count(Verdict::untestable),
                       claim.rows.size(), (*untestable)->text);
  }
  return out;
}

std::string section(const std::string& title, const std::string& text) {
  return text.empty() ? "" : title + "\n" + text;
}

}  // namespace

std::string check_summary(std::span<const CheckRow> rows) {
  return count_table(rows, false) + count_table(rows, true) + check_findings(rows);
}

std::string check_findings(std::span<const CheckRow> rows) {
  const std::vector<ClaimRows> statements = by_claim(rows, false), claims = by_claim(rows, true);
  const std::string faults = fault_text(statements);
  const std::string first = faults.empty() && !statements.empty() ? "No fault was found.\n" : "";
  return first + section("Violated: the code or the paper is wrong", faults) +
         section("What holds", holding_text(statements, claims)) +
         section("What is contradicted here", contradicted_text(claims)) +
         section("What could not be decided, and what it would take", undecided_text(claims));
}

}  // namespace kvbench
