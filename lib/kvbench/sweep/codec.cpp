// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/codec.hpp>

#include <kvbench/sweep/visit.hpp>

namespace kvbench::sweep {

std::string encode_layout(SweepLayout layout) { return store::encode(layout); }
SweepLayout decode_layout(std::string_view bytes) { return store::decode<SweepLayout>(bytes); }
std::string encode_cells(CellBlock cells) { return store::encode(cells); }
CellBlock decode_cells(std::string_view bytes) { return store::decode<CellBlock>(bytes); }
std::string encode_measures(std::vector<bounds::MeasureRow> rows) { return store::encode(rows); }
std::vector<bounds::MeasureRow> decode_measures(std::string_view bytes) {
  return store::decode<std::vector<bounds::MeasureRow>>(bytes);
}

}  // namespace kvbench::sweep
