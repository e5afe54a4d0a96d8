// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/check_table.hpp>

#include <vector>

#include <fmt/format.h>

namespace kvbench {
namespace {

std::string failures_text(const CheckRow& r) {
  return r.failures && r.trials ? fmt::format("{}/{}", *r.failures, *r.trials) : "-";
}

}  // namespace

std::string subject_text(const CheckRow& r) {
  if (!r.layer || r.source.starts_with("synthetic:")) return r.source.empty() ? "-" : r.source;
  return fmt::format("prompt {}, layer {}, kv head {}", r.prompt, *r.layer, r.kv_head.value_or(0));
}

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
       "supported, contradicted, undecided or untestable (claims); holds with margin, holds, violated, vacuous or not "
       "applicable (theorems, identities, costs); none (data)",
       text_of(&CheckRow::verdict)},
      {"assumptions", "1 where the theorem's assumptions are met",
       [](const CheckRow& r) { return r.assumptions ? "1" : "0"; }},
      {"assumptions_text", "the assumptions with their values", text_of(&CheckRow::assumptions_text)},
      {"literal", "bound with the constants of the paper", text_of(&CheckRow::literal)},
      {"tight", "bound with the constants derived in docs/theory", text_of(&CheckRow::tight)},
      {"data", "bound with values of the data in place of worst cases", text_of(&CheckRow::data)},
      {"bound", "the bound or exact value that decides the verdict", text_of(&CheckRow::bound)},
      {"trivial", "bound that holds without the theorem; a bound at or above it is vacuous",
       text_of(&CheckRow::trivial)},
      {"measured", "mean over seeds", text_of(&CheckRow::measured)},
      {"measured_q99", "99 % quantile over seeds", text_of(&CheckRow::measured_q99)},
      {"slack", "bound / measured", [](const CheckRow& r) { return number_text(r.slack()); }},
      {"failures", "seeds in which the bound did not hold", text_of(&CheckRow::failures, "")},
      {"trials", "independent seeds", text_of(&CheckRow::trials, "")},
      {"allowed", "failure probability that the statement allows", text_of(&CheckRow::allowed)},
      {"failure_lo", "lower end of the Clopper-Pearson 95 % interval of the failure probability",
       [](const CheckRow& r) { return number_text(r.failure_interval.lo); }},
      {"failure_hi", "upper end of this interval",
       [](const CheckRow& r) { return number_text(r.failure_interval.hi); }},
      {"p_value", "p-value of the data under the statement; two-sided for claims", text_of(&CheckRow::p_value)},
      {"p_adjusted", "p_value adjusted by Holm over the run, or over the rows of the claim",
       text_of(&CheckRow::p_adjusted)},
      {"p_least", "smallest p_value that data of this size could give", text_of(&CheckRow::p_least)},
      {"detects", "smallest failure probability that would be a violation with a probability of 80 %",
       text_of(&CheckRow::detects)},
      {"units", "independent units of a claim",
       [](const CheckRow& r) { return r.units > 0 ? fmt::format("{}", r.units) : ""; }},
      {"units_needed",
       "units that would decide the claim with a probability of 80 % if its effect were the measured one",
       text_of(&CheckRow::units_needed)},
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
  return out + "\n" + check_findings(rows);
}

}  // namespace kvbench
