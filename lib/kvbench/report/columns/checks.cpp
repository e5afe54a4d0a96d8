// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <fmt/format.h>

#include <kvbench/report/columns/tables.hpp>

namespace kvbench::report {

using evidence::CheckRow;

std::string subject_text(const CheckRow& r) {
  if (!r.layer || r.source.starts_with("synthetic:")) return r.source.empty() ? "-" : r.source;
  return fmt::format("prompt {}, layer {}, kv head {}", r.prompt, *r.layer, r.kv_head.value_or(0));
}

std::span<const Column<CheckRow>> check_columns() {
  static const std::vector<Column<CheckRow>> table = {
      {"claim", "id of the claim (kvbench validate --list)", needed(value_of(&CheckRow::check))},
      {"part", "statement of the claim, with its sizes", needed(value_of(&CheckRow::part))},
      {"kind", "law, exact, theorem, data, claim or cost", needed(value_of(&CheckRow::kind))},
      {"source", "trace or synthetic stream", needed(value_of(&CheckRow::source))},
      {"prompt", "prompt group", needed(value_of(&CheckRow::prompt))},
      {"layer", "layer of the model", needed(value_of(&CheckRow::layer, ""))},
      {"kv_head", "kv head", needed(value_of(&CheckRow::kv_head, ""))},
      {"params", "parameters of the method", needed(value_of(&CheckRow::params))},
      {"verdict",
       "supported, contradicted, undecided or untestable (claims); holds with margin, holds, violated, vacuous or not "
       "applicable (theorems, identities, costs); none (data)",
       needed(value_of(&CheckRow::verdict))},
      {"assumptions", "1 where the theorem's assumptions are met", value_of(&CheckRow::assumptions)},
      {"assumptions_text", "the assumptions with their values", value_of(&CheckRow::assumptions_text)},
      {"literal", "bound with the constants of the paper", needed(value_of(&CheckRow::literal))},
      {"tight", "bound with the constants derived in docs/theory", needed(value_of(&CheckRow::tight))},
      {"data", "bound with values of the data in place of worst cases", needed(value_of(&CheckRow::data))},
      {"bound", "the bound or exact value that decides the verdict", needed(value_of(&CheckRow::bound))},
      {"trivial", "bound that holds without the theorem; a bound at or above it is vacuous",
       needed(value_of(&CheckRow::trivial))},
      {"measured", "mean over seeds", needed(value_of(&CheckRow::measured))},
      {"measured_q99", "99 % quantile over seeds", needed(value_of(&CheckRow::measured_q99))},
      {"slack", "bound / measured", value_where<CheckRow>(always, &CheckRow::slack)},
      {"failures", "seeds in which the bound did not hold", needed(value_of(&CheckRow::failures, ""))},
      {"trials", "independent seeds", needed(value_of(&CheckRow::trials, ""))},
      of_share<CheckRow>(
          {"allowed", "failure probability that the statement allows", needed(value_of(&CheckRow::allowed))}),
      of_share<CheckRow>({"failure_lo", "lower end of the Clopper-Pearson 95 % interval of the failure probability",
                          value_where<CheckRow>(
                              always, [](auto& r) -> auto& { return r.failure_interval.lo; })}),
      of_share<CheckRow>({"failure_hi", "upper end of this interval",
                          value_where<CheckRow>(
                              always, [](auto& r) -> auto& { return r.failure_interval.hi; })}),
      of_share<CheckRow>(
          {"p_value", "p-value of the data under the statement; two-sided for claims", value_of(&CheckRow::p_value)}),
      of_share<CheckRow>({"p_adjusted", "p_value adjusted by Holm over the run, or over the rows of the claim",
                          needed(value_of(&CheckRow::p_adjusted))}),
      of_share<CheckRow>(
          {"p_least", "smallest p_value that data of this size could give", value_of(&CheckRow::p_least)}),
      of_share<CheckRow>({"detects",
                          "smallest failure probability that would be a violation with a probability of 80 %",
                          value_of(&CheckRow::detects)}),
      {"units", "independent units of a claim",
       needed(value_where<CheckRow>([](const CheckRow& r) { return r.units > 0; }, &CheckRow::units))},
      {"over_places", "layers and texts, where these are the units of a claim", value_of(&CheckRow::over_places)},
      {"units_needed",
       "units that would decide the claim with a probability of 80 % if its effect were the measured one",
       needed(value_of(&CheckRow::units_needed))},
      {"text", "the values in a sentence, or the reason why the statement was not tested",
       needed(value_of(&CheckRow::text))},
      needed(version_column<CheckRow>()),
      needed(commit_column<CheckRow>()),
  };
  return table;
}

using measures::MeasureRow;

std::span<const Column<MeasureRow>> measure_columns() {
  static const std::vector<Column<MeasureRow>> table = {
      {"run", "run of the sweep file", value_of(&MeasureRow::run)},
      {"trace", "file name of the trace", needed(value_of(&MeasureRow::trace))},
      {"sha256", "first 12 digits of the SHA-256 of the trace", needed(value_of(&MeasureRow::sha256))},
      {"model", "model that the trace came from", needed(value_of(&MeasureRow::model))},
      {"prompt", "prompt group", needed(value_of(&MeasureRow::prompt))},
      {"layer", "layer of the model", needed(value_of(&MeasureRow::layer))},
      {"kv_head", "kv head", needed(value_of(&MeasureRow::kv_head))},
      {"measure", "clusterability or similarity-by-distance", needed(value_of(&MeasureRow::measure))},
      {"array", "keys, values, or both joined", needed(value_of(&MeasureRow::array))},
      {"x", "number of centres, or distance in tokens", needed(value_of(&MeasureRow::x))},
      {"value", "covering radius relative to the spread, or mean cosine", needed(value_of(&MeasureRow::value))},
      {"count", "number of points or pairs behind the value", value_of(&MeasureRow::count)},
      needed(version_column<MeasureRow>()),
      needed(commit_column<MeasureRow>()),
  };
  return table;
}

}  // namespace kvbench::report
