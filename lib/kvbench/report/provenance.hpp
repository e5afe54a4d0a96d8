// SPDX-License-Identifier: Apache-2.0
// Where the rows of a report come from.
#pragma once

#include <span>

#include <kvbench/report/document/document.hpp>
#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

/// Inputs: one row per file, trace, protocol, machine and program version.
DocTable provenance_table(std::span<const CsvTable> tables);

}  // namespace kvbench::report
