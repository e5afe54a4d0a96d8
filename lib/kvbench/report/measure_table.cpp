// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/measure_table.hpp>

namespace kvbench {

std::span<const Column<MeasureRow>> measure_columns() {
  static const std::vector<Column<MeasureRow>> table = {
      {"run", "run of the sweep file", text_of(&MeasureRow::run)},
      {"trace", "file name of the trace", text_of(&MeasureRow::trace)},
      {"sha256", "first 12 digits of the SHA-256 of the trace", text_of(&MeasureRow::sha256)},
      {"model", "model that the trace came from", text_of(&MeasureRow::model)},
      {"prompt", "prompt group", text_of(&MeasureRow::prompt)},
      {"layer", "layer of the model", text_of(&MeasureRow::layer)},
      {"kv_head", "kv head", text_of(&MeasureRow::kv_head)},
      {"measure", "clusterability or similarity-by-distance", text_of(&MeasureRow::measure)},
      {"array", "keys, values, or both joined", text_of(&MeasureRow::array)},
      {"x", "number of centres, or distance in tokens", text_of(&MeasureRow::x)},
      {"value", "covering radius relative to the spread, or mean cosine", text_of(&MeasureRow::value)},
      {"count", "points or pairs behind the value", text_of(&MeasureRow::count)},
      version_column<MeasureRow>(),
      commit_column<MeasureRow>(),
  };
  return table;
}

std::string measures_csv(std::span<const MeasureRow> rows) { return csv_of(measure_columns(), rows); }

}  // namespace kvbench
