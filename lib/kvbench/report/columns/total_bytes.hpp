// SPDX-License-Identifier: Apache-2.0
// The sizes of the enumerations that tables hold by name.
#pragma once

#include <kvbench/bounds/check/row.hpp>
#include <kvbench/bounds/measures/measures.hpp>
#include <kvbench/compare/comparison.hpp>
#include <kvbench/eval/eval_record.hpp>
#include <kvbench/report/columns/column.hpp>

namespace kvbench::report {

template <>
inline constexpr int value_count<replay::Status> = 4;
template <>
inline constexpr int value_count<replay::Protocol> = 4;
template <>
inline constexpr int value_count<bounds::CheckKind> = 6;
template <>
inline constexpr int value_count<bounds::Measure> = 2;
template <>
inline constexpr int value_count<Verdict> = 10;
template <>
inline constexpr int value_count<compare::Outcome> = 4;
template <>
inline constexpr int value_count<eval::Inject> = 4;
template <>
inline constexpr int value_count<eval::Difference> = 6;

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
