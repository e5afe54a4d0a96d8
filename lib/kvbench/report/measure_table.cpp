// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/measure_table.hpp>

#include <fmt/format.h>

#include <kvbench/core/version.hpp>
#include <kvbench/report/column.hpp>

namespace kvbench {
namespace {

template <class T>
std::function<std::string(const MeasureRow&)> plain(T MeasureRow::*field) {
  return [field](const MeasureRow& row) { return fmt::format("{}", row.*field); };
}

std::vector<MeasureColumn> make_columns() {
  return {
      {"run", "run of the sweep file", plain(&MeasureRow::run)},
      {"trace", "file name of the trace", plain(&MeasureRow::trace)},
      {"sha256", "first 12 digits of the SHA-256 of the trace", plain(&MeasureRow::sha256)},
      {"model", "model that the trace came from", plain(&MeasureRow::model)},
      {"prompt", "prompt group", plain(&MeasureRow::prompt)},
      {"layer", "layer of the model", plain(&MeasureRow::layer)},
      {"kv_head", "kv head", plain(&MeasureRow::kv_head)},
      {"measure", "clusterability or similarity-by-distance",
       [](const MeasureRow& r) { return std::string(name_of(r.measure)); }},
      {"array", "keys, values, or both joined", plain(&MeasureRow::array)},
      {"x", "number of centres, or distance in tokens", plain(&MeasureRow::x)},
      {"value", "covering radius relative to the spread, or mean cosine",
       [](const MeasureRow& r) { return number_text(r.value); }},
      {"count", "points or pairs behind the value", plain(&MeasureRow::count)},
      {"version", "kvbench version", [](const MeasureRow&) { return std::string(version()); }},
      {"commit", "commit that kvbench was built from", [](const MeasureRow&) { return std::string(commit()); }},
  };
}

}  // namespace

std::span<const MeasureColumn> measure_columns() {
  static const std::vector<MeasureColumn> table = make_columns();
  return table;
}

std::string measures_csv(std::span<const MeasureRow> rows) { return csv_of(measure_columns(), rows); }

}  // namespace kvbench
