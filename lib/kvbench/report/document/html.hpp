// SPDX-License-Identifier: Apache-2.0
// A report as HTML. report.css is its style sheet, report.js its script.
#pragma once

#include <string>

#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// One self-contained file without network access, for light and dark screens, paper and narrow screens. A small script
/// sorts and filters tables and picks out methods; everything is readable without it.
std::string html(const Document& document);

}  // namespace kvbench::report
