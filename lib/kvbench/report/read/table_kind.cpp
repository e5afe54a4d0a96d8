// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/table_kind.hpp>

#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/read/rows.hpp>

namespace kvbench::report {
TableKind kind_of(const CsvTable& table) {
  if (table.has("claim_verdict")) {
    require_columns(table, claim_columns(), "a sweep of a file with claims");
    return TableKind::claims;
  }
  if (table.has("claim") || table.has("verdict")) {
    require_columns(table, check_columns(), "kvbench validate");
    return TableKind::checks;
  }
  if (table.has("kl_mean") || table.has("inject")) {
    require_columns(table, eval_columns(), "kveval");
    return TableKind::evaluations;
  }
  if (table.has("measure") || table.has("array")) {
    require_columns(table, measure_columns(), "a sweep with `measure`");
    return TableKind::measures;
  }
  if (table.has("method") || table.has("rel_err_mean")) {
    require_columns(table, record_columns(), "kvbench replay");
    return TableKind::replay;
  }
  throw Error(
      "{}: is not a table of kvbench; its header has none of the columns 'method' (replay and sweep), 'claim' "
      "(validate), 'kl_mean' (eval) and 'measure' (measures)",
      table.file);
}

}  // namespace kvbench::report
