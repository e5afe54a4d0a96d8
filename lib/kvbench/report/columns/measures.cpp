// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/columns/tables.hpp>

namespace kvbench::report {

using bounds::MeasureRow;

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
