// SPDX-License-Identifier: Apache-2.0
// Cells, measures and the layout of a sweep as bytes, and back. decode_...() throws std::out_of_range for other
// bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <kvbench/sweep/layout.hpp>

namespace kvbench::sweep {

/// The content of a cell: [kv heads of the work item][configurations of the method], in plan order.
using CellBlock = std::vector<std::vector<replay::ConfigurationResult>>;

std::string encode_layout(SweepLayout layout);
SweepLayout decode_layout(std::string_view bytes);

std::string encode_cells(CellBlock cells);  ///< without raw results
CellBlock decode_cells(std::string_view bytes);

std::string encode_measures(std::vector<bounds::MeasureRow> rows);
std::vector<bounds::MeasureRow> decode_measures(std::string_view bytes);

}  // namespace kvbench::sweep
