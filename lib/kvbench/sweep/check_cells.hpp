// SPDX-License-Identifier: Apache-2.0
// What is checked of decoded layouts and cells before they are used: the checksums of a file say that its bytes are
// those that were written, not that kvbench wrote them.
#pragma once

#include <kvbench/sweep/codec.hpp>

namespace kvbench::sweep {

/// Throws std::out_of_range where an index of the layout refers to nothing, or where it promises more than a sweep can
/// have.
void check_layout(const SweepLayout& layout);

/// Throws std::out_of_range unless the block has the heads, configurations and query rows of its entry in a step that
/// was checked.
void check_cells(const CellBlock& block, const StepLayout& step, const CellEntry& entry);

}  // namespace kvbench::sweep
