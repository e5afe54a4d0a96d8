// SPDX-License-Identifier: Apache-2.0
// A column that tables of replays and of evaluations have.
#pragma once

#include <cmath>

#include <kvbench/replay/records/results.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

/// The bytes that are held. Two other columns have its parts; a table that lacks them is read as one with `kv` alone.
template <class Row>
Value<Row> total_bytes(bool (*has)(const Row&)) {
  Value<Row> total = value_where<Row>(has, [](const Row& r) { return r.bytes.of(CostKind::memory); });
  total.parse = [](Row& r, const CsvCell& cell) {
    if (std::isnan(r.bytes.of(CostKind::memory))) r.bytes.kv = cell.number(), r.bytes.meta = 0;
  };
  return total;
}

}  // namespace kvbench::report
