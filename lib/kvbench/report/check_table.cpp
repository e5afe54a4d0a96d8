// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/check_table.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <kvbench/core/version.hpp>
#include <kvbench/report/column.hpp>

namespace kvbench {
namespace {

using Text = std::function<std::string(const CheckRow&)>;

Text number(double CheckRow::*field) {
  return [field](const CheckRow& row) { return number_text(row.*field); };
}
template <class T>
Text optional(std::optional<T> CheckRow::*field) {
  return [field](const CheckRow& row) { return row.*field ? fmt::format("{}", *(row.*field)) : ""; };
}
Text plain(std::string CheckRow::*field) {
  return [field](const CheckRow& row) { return row.*field; };
}

std::vector<CheckColumn> make_columns() {
  return {
      {"claim", "id of the claim (kvbench validate --list)", plain(&CheckRow::claim)},
      {"part", "which of its statements, at which sizes", plain(&CheckRow::part)},
      {"kind", "law, exact, theorem, data, claim or cost", [](const CheckRow& r) { return std::string(name_of(r.kind)); }},
      {"source", "trace, or synthetic stream", plain(&CheckRow::source)},
      {"prompt", "prompt group", plain(&CheckRow::prompt)},
      {"layer", "layer of the model", optional(&CheckRow::layer)},
      {"kv_head", "kv head", optional(&CheckRow::kv_head)},
      {"params", "parameters of the method", plain(&CheckRow::params)},
      {"verdict", "consistent, violated, vacuous or not applicable",
       [](const CheckRow& r) { return std::string(name_of(r.verdict)); }},
      {"assumptions", "1 where the theorem's assumptions are met", [](const CheckRow& r) { return r.assumptions ? "1" : "0"; }},
      {"assumptions_text", "with the values that decide", plain(&CheckRow::assumptions_text)},
      {"literal", "bound with the constants of the paper", number(&CheckRow::literal)},
      {"tight", "bound with the constants derived in docs/theory", number(&CheckRow::tight)},
      {"data", "bound with what the data say in place of worst cases", number(&CheckRow::data)},
      {"bound", "the one of them, or the exact value, that decides", number(&CheckRow::bound)},
      {"trivial", "holds without the theorem: a bound at or above it is vacuous", number(&CheckRow::trivial)},
      {"measured", "mean over seeds", number(&CheckRow::measured)},
      {"measured_q99", "99 % quantile over seeds", number(&CheckRow::measured_q99)},
      {"slack", "bound / measured", [](const CheckRow& r) { return number_text(r.slack()); }},
      {"failures", "seeds in which the bound did not hold", optional(&CheckRow::failures)},
      {"trials", "independent seeds", optional(&CheckRow::trials)},
      {"allowed", "failure probability that the statement grants", number(&CheckRow::allowed)},
      {"failure_lo", "Clopper-Pearson 95 % interval of the failure probability",
       [](const CheckRow& r) { return number_text(r.failure_interval.lo); }},
      {"failure_hi", "its upper end", [](const CheckRow& r) { return number_text(r.failure_interval.hi); }},
      {"p_value", "of the data if the statement holds", number(&CheckRow::p_value)},
      {"p_adjusted", "the same, adjusted by Holm over the run", number(&CheckRow::p_adjusted)},
      {"text", "the numbers in a sentence, or why there is no verdict", plain(&CheckRow::text)},
      {"version", "kvbench version", [](const CheckRow&) { return std::string(version()); }},
      {"commit", "commit that kvbench was built from", [](const CheckRow&) { return std::string(commit()); }},
  };
}

std::string where(const CheckRow& r) {
  if (!r.layer || r.source.starts_with("synthetic:")) return r.source.empty() ? "-" : r.source;
  return fmt::format("prompt {}, layer {}, kv head {}", r.prompt, *r.layer, r.kv_head.value_or(0));
}

std::string failures(const CheckRow& r) { return r.failures && r.trials ? fmt::format("{}/{}", *r.failures, *r.trials) : "-"; }

/// Faults one by one; findings of a claim's part on many heads as one, with the first of them.
std::string violations(std::span<const CheckRow> rows) {
  std::string out;
  std::vector<std::pair<const CheckRow*, int>> findings;
  for (const CheckRow& r : rows) {
    if (r.verdict != Verdict::violated) continue;
    if (is_fault(r)) {
      out += fmt::format("violated: {} ({}) on {}: {}\n", r.claim, r.part, where(r), r.text.empty() ? failures(r) : r.text);
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
    out += fmt::format("finding: {} ({}) is contradicted on {}{}: {}\n", row->claim, row->part, where(*row), more, row->text);
  }
  return out;
}

}  // namespace

std::span<const CheckColumn> check_columns() {
  static const std::vector<CheckColumn> table = make_columns();
  return table;
}

std::string check_csv(std::span<const CheckRow> rows) { return csv_of(check_columns(), rows); }

std::string check_markdown(std::span<const CheckRow> rows) {
  std::string out =
      "| claim | part | on | literal | tight | data | measured | q99 | failures | verdict |\n"
      "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n";
  for (const CheckRow& r : rows) {
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", r.claim, r.part, where(r),
                       short_number(r.literal), short_number(r.tight), short_number(r.data), short_number(r.measured),
                       short_number(r.measured_q99), failures(r), name_of(r.verdict));
  }
  const std::string bad = violations(rows);
  return bad.empty() ? out : out + "\n" + bad;
}

std::string check_summary(std::span<const CheckRow> rows) {
  std::vector<std::string> claims;
  for (const CheckRow& r : rows) {
    if (std::ranges::find(claims, r.claim) == claims.end()) claims.push_back(r.claim);
  }
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
