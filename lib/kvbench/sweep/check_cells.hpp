// SPDX-License-Identifier: Apache-2.0
// What is checked of decoded layouts, cells and measures before they are used (store/check_values.hpp says why).
#pragma once

#include <kvbench/sweep/codec.hpp>

namespace kvbench::sweep {

/// Throws std::out_of_range where an index of the layout refers to nothing, where something is listed twice or a cell
/// is missing, where a name is none, or where it promises more than a sweep can have.
void check_layout(const SweepLayout& layout);

/// Throws std::out_of_range unless the block has the heads, configurations and query rows of its entry in a step that
/// was checked, and figures that can be right.
void check_cells(const CellBlock& block, const StepLayout& step, const CellEntry& entry);

/// The same for the measures of an entry of StepLayout::measures.
void check_measures(const std::vector<bounds::MeasureRow>& rows, const StepLayout& step, const CellEntry& entry);

}  // namespace kvbench::sweep
