// SPDX-License-Identifier: Apache-2.0
// A report about some of the methods of its tables.
#pragma once

#include <string>
#include <vector>

#include <kvbench/report/read/csv.hpp>

namespace kvbench::report {

/// Keeps the rows of these methods in the tables of replay, sweep and kveval, and removes those of these tables that
/// have none. A name is METHOD, with all its parameters, or METHOD[PARAMS]. Other tables stay as they are. Throws Error
/// for a name that no row has, with the names of the rows.
void keep_methods(std::vector<CsvTable>& tables, const std::vector<std::string>& names);

}  // namespace kvbench::report
