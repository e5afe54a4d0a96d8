// SPDX-License-Identifier: Apache-2.0
// The rows of `kvbench validate` as Markdown.
#pragma once

#include <span>
#include <string>

#include <kvbench/bounds/check/row.hpp>

namespace kvbench::report {

/// One line per row, then check_findings().
std::string check_markdown(std::span<const bounds::CheckRow> rows);
}  // namespace kvbench::report
