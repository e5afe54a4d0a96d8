// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/columns/checks.hpp>

#include <vector>

#include <fmt/format.h>

namespace kvbench::report {

std::string subject_text(const bounds::CheckRow& r) {
  if (!r.layer || r.source.starts_with("synthetic:")) return r.source.empty() ? "-" : r.source;
  return fmt::format("prompt {}, layer {}, kv head {}", r.prompt, *r.layer, r.kv_head.value_or(0));
}

std::span<const Column<bounds::CheckRow>> check_columns() {
  static const std::vector<Column<bounds::CheckRow>> table = {
      {"claim", "id of the claim (kvbench validate --list)", text_of(&bounds::CheckRow::check)},
      {"part", "statement of the claim, with its sizes", text_of(&bounds::CheckRow::part)},
      {"kind", "law, exact, theorem, data, claim or cost", text_of(&bounds::CheckRow::kind)},
      {"source", "trace or synthetic stream", text_of(&bounds::CheckRow::source)},
      {"prompt", "prompt group", text_of(&bounds::CheckRow::prompt)},
      {"layer", "layer of the model", text_of(&bounds::CheckRow::layer, "")},
      {"kv_head", "kv head", text_of(&bounds::CheckRow::kv_head, "")},
      {"params", "parameters of the method", text_of(&bounds::CheckRow::params)},
      {"verdict",
       "supported, contradicted, undecided or untestable (claims); holds with margin, holds, violated, vacuous or not "
       "applicable (theorems, identities, costs); none (data)",
       text_of(&bounds::CheckRow::verdict)},
      {"assumptions", "1 where the theorem's assumptions are met",
       [](const bounds::CheckRow& r) { return r.assumptions ? "1" : "0"; }},
      {"assumptions_text", "the assumptions with their values", text_of(&bounds::CheckRow::assumptions_text)},
      {"literal", "bound with the constants of the paper", text_of(&bounds::CheckRow::literal)},
      {"tight", "bound with the constants derived in docs/theory", text_of(&bounds::CheckRow::tight)},
      {"data", "bound with values of the data in place of worst cases", text_of(&bounds::CheckRow::data)},
      {"bound", "the bound or exact value that decides the verdict", text_of(&bounds::CheckRow::bound)},
      {"trivial", "bound that holds without the theorem; a bound at or above it is vacuous",
       text_of(&bounds::CheckRow::trivial)},
      {"measured", "mean over seeds", text_of(&bounds::CheckRow::measured)},
      {"measured_q99", "99 % quantile over seeds", text_of(&bounds::CheckRow::measured_q99)},
      {"slack", "bound / measured", [](const bounds::CheckRow& r) { return number_text(r.slack()); }},
      {"failures", "seeds in which the bound did not hold", text_of(&bounds::CheckRow::failures, "")},
      {"trials", "independent seeds", text_of(&bounds::CheckRow::trials, "")},
      {"allowed", "failure probability that the statement allows", text_of(&bounds::CheckRow::allowed)},
      {"failure_lo", "lower end of the Clopper-Pearson 95 % interval of the failure probability",
       [](const bounds::CheckRow& r) { return number_text(r.failure_interval.lo); }},
      {"failure_hi", "upper end of this interval",
       [](const bounds::CheckRow& r) { return number_text(r.failure_interval.hi); }},
      {"p_value", "p-value of the data under the statement; two-sided for claims", text_of(&bounds::CheckRow::p_value)},
      {"p_adjusted", "p_value adjusted by Holm over the run, or over the rows of the claim",
       text_of(&bounds::CheckRow::p_adjusted)},
      {"p_least", "smallest p_value that data of this size could give", text_of(&bounds::CheckRow::p_least)},
      {"detects", "smallest failure probability that would be a violation with a probability of 80 %",
       text_of(&bounds::CheckRow::detects)},
      {"units", "independent units of a claim",
       [](const bounds::CheckRow& r) { return r.units > 0 ? fmt::format("{}", r.units) : ""; }},
      {"units_needed",
       "units that would decide the claim with a probability of 80 % if its effect were the measured one",
       text_of(&bounds::CheckRow::units_needed)},
      {"text", "the values in a sentence, or the reason why the statement was not tested",
       text_of(&bounds::CheckRow::text)},
      version_column<bounds::CheckRow>(),
      commit_column<bounds::CheckRow>(),
  };
  return table;
}

std::string check_csv(std::span<const bounds::CheckRow> rows) { return csv_of(check_columns(), rows); }

}  // namespace kvbench::report
