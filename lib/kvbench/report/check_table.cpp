// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/check_table.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace kvbench {
namespace {

std::string subject_text(const CheckRow& r) {
  if (!r.layer || r.source.starts_with("synthetic:")) return r.source.empty() ? "-" : r.source;
  return fmt::format("prompt {}, layer {}, kv head {}", r.prompt, *r.layer, r.kv_head.value_or(0));
}

std::string failures_text(const CheckRow& r) {
  return r.failures && r.trials ? fmt::format("{}/{}", *r.failures, *r.trials) : "-";
}

/// One sentence per fault, and one per statement that the data contradict, which names the first of its subjects.
std::string findings_text(std::span<const CheckRow> rows) {
  std::string out;
  std::vector<std::pair<const CheckRow*, int>> findings;
  for (const CheckRow& r : rows) {
    if (is_fault(r)) {
      out += fmt::format("violated: {} ({}) on {}: {}\n", r.claim, r.part, subject_text(r),
                         r.text.empty() ? failures_text(r) : r.text);
    }
    if (r.verdict != Verdict::contradicted) continue;
    const auto same = [&](const auto& known) { return known.first->claim == r.claim && known.first->part == r.part; };
    const auto known = std::ranges::find_if(findings, same);
    if (known == findings.end()) {
      findings.emplace_back(&r, 1);
    } else {
      ++known->second;
    }
  }
  for (const auto& [row, count] : findings) {
    const std::string more = count > 1 ? fmt::format(" and {} more", count - 1) : "";
    out += fmt::format("contradicted: {} ({}) on {}{}: {}\n", row->claim, row->part, subject_text(*row), more, row->text);
  }
  return out;
}

constexpr std::array statement_verdicts = {Verdict::consistent, Verdict::violated, Verdict::vacuous, Verdict::not_applicable};
constexpr std::array claim_verdicts = {Verdict::supported, Verdict::contradicted, Verdict::undecided, Verdict::untestable};

/// Rows per verdict of each id, for rows of claims or for all others; "" where there are none.
std::string count_table(std::span<const CheckRow> rows, bool claims) {
  DistinctTexts ids;
  for (const CheckRow& r : rows) {
    if ((r.kind == CheckKind::claim) == claims) ids.add(r.claim);
  }
  if (ids.list().empty()) return "";
  TextRows lines = {{claims ? "claim of a paper" : "claim"}};
  const auto& columns = claims ? claim_verdicts : statement_verdicts;
  for (const Verdict verdict : columns) lines[0].emplace_back(name_of(verdict));
  if (claims) lines[0].emplace_back("verdict");
  for (const std::string& id : ids.list()) {
    lines.push_back({id});
    for (const Verdict verdict : columns) {
      const auto counts = [&](const CheckRow& r) { return r.claim == id && r.verdict == verdict; };
      lines.back().push_back(fmt::format("{}", std::ranges::count_if(rows, counts)));
    }
    if (!claims) continue;
    std::vector<Verdict> verdicts;
    for (const CheckRow& r : rows) {
      if (r.claim == id && r.kind == CheckKind::claim) verdicts.push_back(r.verdict);
    }
    lines.back().emplace_back(name_of(joint_verdict(verdicts)));
  }
  return aligned_rows(lines, [](std::size_t column) { return column == 0; });
}

}  // namespace

std::span<const Column<CheckRow>> check_columns() {
  static const std::vector<Column<CheckRow>> table = {
      {"claim", "id of the claim (kvbench validate --list)", text_of(&CheckRow::claim)},
      {"part", "statement of the claim, with its sizes", text_of(&CheckRow::part)},
      {"kind", "law, exact, theorem, data, claim or cost", text_of(&CheckRow::kind)},
      {"source", "trace or synthetic stream", text_of(&CheckRow::source)},
      {"prompt", "prompt group", text_of(&CheckRow::prompt)},
      {"layer", "layer of the model", text_of(&CheckRow::layer, "")},
      {"kv_head", "kv head", text_of(&CheckRow::kv_head, "")},
      {"params", "parameters of the method", text_of(&CheckRow::params)},
      {"verdict",
       "supported, contradicted, undecided or untestable (claims); consistent, violated, vacuous or not applicable (others)",
       text_of(&CheckRow::verdict)},
      {"assumptions", "1 where the theorem's assumptions are met", [](const CheckRow& r) { return r.assumptions ? "1" : "0"; }},
      {"assumptions_text", "the assumptions with their values", text_of(&CheckRow::assumptions_text)},
      {"literal", "bound with the constants of the paper", text_of(&CheckRow::literal)},
      {"tight", "bound with the constants derived in docs/theory", text_of(&CheckRow::tight)},
      {"data", "bound with values of the data in place of worst cases", text_of(&CheckRow::data)},
      {"bound", "the bound or exact value that decides the verdict", text_of(&CheckRow::bound)},
      {"trivial", "bound that holds without the theorem; a bound at or above it is vacuous", text_of(&CheckRow::trivial)},
      {"measured", "mean over seeds", text_of(&CheckRow::measured)},
      {"measured_q99", "99 % quantile over seeds", text_of(&CheckRow::measured_q99)},
      {"slack", "bound / measured", [](const CheckRow& r) { return number_text(r.slack()); }},
      {"failures", "seeds in which the bound did not hold", text_of(&CheckRow::failures, "")},
      {"trials", "independent seeds", text_of(&CheckRow::trials, "")},
      {"allowed", "failure probability that the statement allows", text_of(&CheckRow::allowed)},
      {"failure_lo", "lower end of the Clopper-Pearson 95 % interval of the failure probability",
       [](const CheckRow& r) { return number_text(r.failure_interval.lo); }},
      {"failure_hi", "upper end of this interval", [](const CheckRow& r) { return number_text(r.failure_interval.hi); }},
      {"p_value", "p-value of the data under the statement; two-sided for claims", text_of(&CheckRow::p_value)},
      {"p_adjusted", "p_value adjusted by Holm over the run, or over the rows of the claim", text_of(&CheckRow::p_adjusted)},
      {"text", "the values in a sentence, or the reason why the statement was not tested", text_of(&CheckRow::text)},
      version_column<CheckRow>(),
      commit_column<CheckRow>(),
  };
  return table;
}

std::string check_csv(std::span<const CheckRow> rows) { return csv_of(check_columns(), rows); }

std::string check_markdown(std::span<const CheckRow> rows) {
  TextRows cells = {{"claim", "part", "on", "literal", "tight", "data", "measured", "q99", "failures", "verdict"}};
  for (const CheckRow& r : rows) {
    cells.push_back({r.claim, r.part, subject_text(r)});
    for (const double value : {r.literal, r.tight, r.data, r.measured, r.measured_q99}) {
      cells.back().push_back(short_number(value));
    }
    cells.back().push_back(failures_text(r));
    cells.back().emplace_back(name_of(r.verdict));
  }
  const std::string out = markdown_rows(cells, [](std::size_t column) { return column < 3 || column == 9; });
  const std::string bad = findings_text(rows);
  return bad.empty() ? out : out + "\n" + bad;
}

std::string check_summary(std::span<const CheckRow> rows) {
  const std::string statements = count_table(rows, false), claims = count_table(rows, true);
  return statements + (statements.empty() || claims.empty() ? "" : "\n") + claims + findings_text(rows);
}

}  // namespace kvbench
