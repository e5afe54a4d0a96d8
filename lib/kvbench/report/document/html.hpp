// SPDX-License-Identifier: Apache-2.0
// A report as HTML. report.css is its style sheet, report.js its script.
#pragma once

#include <string>
#include <string_view>

#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// What every report begins with, and no other page.
inline constexpr std::string_view html_opening =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
    "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src "
    "'unsafe-inline'\">\n";

/// One self-contained file without network access, for light and dark screens, paper and narrow screens. A small script
/// sorts and filters tables and picks out methods; everything is readable without it.
std::string html(const Document& document);

}  // namespace kvbench::report
