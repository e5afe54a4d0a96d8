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

/// Faults one by one; findings of a claim's part on many heads as one, with the first of them.
std::string violations(std::span<const CheckRow> rows) {
  std::string out;
  std::vector<std::pair<const CheckRow*, int>> findings;
  for (const CheckRow& r : rows) {
    if (r.verdict != Verdict::violated) continue;
    if (is_fault(r)) {
      out += fmt::format("violated: {} ({}) on {}: {}\n", r.claim, r.part, subject_text(r),
                         r.text.empty() ? failures_text(r) : r.text);
      continue;
    }
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
    out += fmt::format("finding: {} ({}) is contradicted on {}{}: {}\n", row->claim, row->part, subject_text(*row), more,
                       row->text);
  }
  return out;
}

}  // namespace

std::span<const Column<CheckRow>> check_columns() {
  static const std::vector<Column<CheckRow>> table = {
      {"claim", "id of the claim (kvbench validate --list)", text_of(&CheckRow::claim)},
      {"part", "which of its statements, at which sizes", text_of(&CheckRow::part)},
      {"kind", "law, exact, theorem, data, claim or cost", text_of(&CheckRow::kind)},
      {"source", "trace, or synthetic stream", text_of(&CheckRow::source)},
      {"prompt", "prompt group", text_of(&CheckRow::prompt)},
      {"layer", "layer of the model", text_of(&CheckRow::layer, "")},
      {"kv_head", "kv head", text_of(&CheckRow::kv_head, "")},
      {"params", "parameters of the method", text_of(&CheckRow::params)},
      {"verdict", "consistent, violated, vacuous or not applicable", text_of(&CheckRow::verdict)},
      {"assumptions", "1 where the theorem's assumptions are met", [](const CheckRow& r) { return r.assumptions ? "1" : "0"; }},
      {"assumptions_text", "with the values that decide", text_of(&CheckRow::assumptions_text)},
      {"literal", "bound with the constants of the paper", text_of(&CheckRow::literal)},
      {"tight", "bound with the constants derived in docs/theory", text_of(&CheckRow::tight)},
      {"data", "bound with what the data say in place of worst cases", text_of(&CheckRow::data)},
      {"bound", "the one of them, or the exact value, that decides", text_of(&CheckRow::bound)},
      {"trivial", "holds without the theorem: a bound at or above it is vacuous", text_of(&CheckRow::trivial)},
      {"measured", "mean over seeds", text_of(&CheckRow::measured)},
      {"measured_q99", "99 % quantile over seeds", text_of(&CheckRow::measured_q99)},
      {"slack", "bound / measured", [](const CheckRow& r) { return number_text(r.slack()); }},
      {"failures", "seeds in which the bound did not hold", text_of(&CheckRow::failures, "")},
      {"trials", "independent seeds", text_of(&CheckRow::trials, "")},
      {"allowed", "failure probability that the statement grants", text_of(&CheckRow::allowed)},
      {"failure_lo", "Clopper-Pearson 95 % interval of the failure probability",
       [](const CheckRow& r) { return number_text(r.failure_interval.lo); }},
      {"failure_hi", "its upper end", [](const CheckRow& r) { return number_text(r.failure_interval.hi); }},
      {"p_value", "of the data if the statement holds", text_of(&CheckRow::p_value)},
      {"p_adjusted", "the same, adjusted by Holm over the run", text_of(&CheckRow::p_adjusted)},
      {"text", "the numbers in a sentence, or why there is no verdict", text_of(&CheckRow::text)},
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
  const std::string bad = violations(rows);
  return bad.empty() ? out : out + "\n" + bad;
}

std::string check_summary(std::span<const CheckRow> rows) {
  std::vector<std::string> claims;
  for (const CheckRow& r : rows) add_distinct(claims, r.claim);
  std::string out =
      fmt::format("{:<24} {:>10} {:>9} {:>8} {:>15}\n", "claim", "consistent", "violated", "vacuous", "not applicable");
  for (const std::string& claim : claims) {
    std::array<int, 4> count{};
    for (const CheckRow& r : rows) count[static_cast<std::size_t>(r.verdict)] += r.claim == claim;
    out += fmt::format("{:<24} {:>10} {:>9} {:>8} {:>15}\n", claim, count[0], count[1], count[2], count[3]);
  }
  return out + violations(rows);
}

}  // namespace kvbench
