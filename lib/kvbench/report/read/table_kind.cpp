// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/table_kind.hpp>

#include <span>

#include <kvbench/core/error.hpp>

namespace kvbench::report {
namespace {

constexpr const char* needed_of_replays[] = {
    "trace",      "sha256",     "model",          "prompt",        "layer",       "kv_head",    "head",
    "query",      "protocol",   "device",         "method",        "params",      "budget",     "status",
    "reason",     "query_rows", "context_tokens", "budget_tokens", "total_bytes", "full_bytes", "rel_err_mean",
    "rel_err_lo", "rel_err_hi", "recall_mean",    "version",       "commit",      "isa"};
constexpr const char* needed_of_checks[] = {
    "claim",  "part",    "kind",       "source",  "prompt", "layer",   "kv_head",     "verdict",      "text",
    "params", "literal", "tight",      "data",    "bound",  "trivial", "measured",    "measured_q99", "failures",
    "trials", "allowed", "p_adjusted", "version", "commit", "units",   "units_needed"};
constexpr const char* needed_of_measures[] = {"trace",   "sha256", "model", "prompt", "layer",   "kv_head",
                                              "measure", "array",  "x",     "value",  "version", "commit"};
constexpr const char* needed_of_claims[] = {
    "claim",   "claim_verdict", "relation", "verdict",  "reason",  "metric",     "run",    "trace",  "prompt",
    "layer",   "head",          "a",        "budget_a", "b",       "budget_b",   "mean_a", "mean_b", "diff",
    "diff_lo", "diff_hi",       "ratio_lo", "ratio_hi", "p_value", "p_adjusted", "blocks", "seeds"};

constexpr const char* needed_of_evaluations[] = {"model",    "sha256",         "text",       "task",         "document",
                                                 "question", "context_tokens", "inject",     "inject_layer", "layer",
                                                 "method",   "params",         "budget",     "status",       "reason",
                                                 "kl_mean",  "total_bytes",    "full_bytes", "device"};

void require_columns(const CsvTable& table, std::span<const char* const> needed, const char* writer) {
  for (const char* column : needed) {
    if (!table.has(column)) throw Error("{}: lacks the column '{}', which {} writes", table.file, column, writer);
  }
}

}  // namespace

TableKind kind_of(const CsvTable& table) {
  if (table.has("claim_verdict")) {
    require_columns(table, needed_of_claims, "a sweep of a file with claims");
    return TableKind::claims;
  }
  if (table.has("claim") || table.has("verdict")) {
    require_columns(table, needed_of_checks, "kvbench validate");
    return TableKind::checks;
  }
  if (table.has("kl_mean") || table.has("inject")) {
    require_columns(table, needed_of_evaluations, "kveval");
    return TableKind::evaluations;
  }
  if (table.has("measure") || table.has("array")) {
    require_columns(table, needed_of_measures, "a sweep with `measure`");
    return TableKind::measures;
  }
  if (table.has("method") || table.has("rel_err_mean")) {
    require_columns(table, needed_of_replays, "kvbench replay");
    return TableKind::replay;
  }
  throw Error(
      "{}: is not a table of kvbench; its header has none of the columns 'method' (replay and sweep), 'claim' "
      "(validate), 'kl_mean' (eval) and 'measure' (measures)",
      table.file);
}

}  // namespace kvbench::report
