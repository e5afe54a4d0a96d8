// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/columns/measures.hpp>

namespace kvbench::report {

std::span<const Column<bounds::MeasureRow>> measure_columns() {
  static const std::vector<Column<bounds::MeasureRow>> table = {
      {"run", "run of the sweep file", text_of(&bounds::MeasureRow::run)},
      {"trace", "file name of the trace", text_of(&bounds::MeasureRow::trace)},
      {"sha256", "first 12 digits of the SHA-256 of the trace", text_of(&bounds::MeasureRow::sha256)},
      {"model", "model that the trace came from", text_of(&bounds::MeasureRow::model)},
      {"prompt", "prompt group", text_of(&bounds::MeasureRow::prompt)},
      {"layer", "layer of the model", text_of(&bounds::MeasureRow::layer)},
      {"kv_head", "kv head", text_of(&bounds::MeasureRow::kv_head)},
      {"measure", "clusterability or similarity-by-distance", text_of(&bounds::MeasureRow::measure)},
      {"array", "keys, values, or both joined", text_of(&bounds::MeasureRow::array)},
      {"x", "number of centres, or distance in tokens", text_of(&bounds::MeasureRow::x)},
      {"value", "covering radius relative to the spread, or mean cosine", text_of(&bounds::MeasureRow::value)},
      {"count", "number of points or pairs behind the value", text_of(&bounds::MeasureRow::count)},
      version_column<bounds::MeasureRow>(),
      commit_column<bounds::MeasureRow>(),
  };
  return table;
}

std::string measures_csv(std::span<const bounds::MeasureRow> rows) { return csv_of(measure_columns(), rows); }

}  // namespace kvbench::report
