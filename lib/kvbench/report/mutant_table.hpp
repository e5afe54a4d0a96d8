// SPDX-License-Identifier: Apache-2.0
// The rows of `kvbench validate --mutants` as text.
#pragma once

#include <span>
#include <string>

#include <kvbench/bounds/mutants/mutants.hpp>
#include <kvbench/report/column.hpp>

namespace kvbench {

std::span<const Column<MutantResult>> mutant_columns();
/// RFC 4180 quoting, LF, one header line.
std::string mutant_csv(std::span<const MutantResult> results);
/// For a terminal: how many faults are caught, one row per fault, then the faults that no check caught.
std::string mutant_summary(std::span<const MutantResult> results);

}  // namespace kvbench
