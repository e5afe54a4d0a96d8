// SPDX-License-Identifier: Apache-2.0
// The rows of `kvbench validate --mutants` as text.
#pragma once

#include <span>
#include <vector>

#include <kvbench/faithful/mutants/mutant.hpp>
#include <kvbench/report/columns/column.hpp>
#include <kvbench/report/document/document.hpp>

namespace kvbench {

std::span<const report::Column<faithful::MutantResult>> mutant_columns();
/// How many faults are caught, one row per fault, then the faults that no check caught.
std::vector<report::Block> mutant_summary(std::span<const faithful::MutantResult> results);

}  // namespace kvbench
