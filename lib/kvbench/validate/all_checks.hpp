// SPDX-License-Identifier: Apache-2.0
// The table of checks. Each theorem or claim has a source file, and a page in docs/theory that states it in the paper's
// notation and derives its constants. Claims about figures are stated by sweep files instead (sweep/figure_checks.hpp).
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::validate {

/// All checks, in the order of the table in all_checks.cpp.
std::span<const bounds::Check> all_checks();

/// Those of `checks` with these ids or prefixes ("subgen" means all of "subgen.*") about these methods; an empty list
/// means all. Throws Error with the nearest known name.
std::vector<const bounds::Check*> find_checks(std::span<const bounds::Check> checks,
                                              const std::vector<std::string>& ids,
                                              const std::vector<std::string>& methods);

}  // namespace kvbench::validate
