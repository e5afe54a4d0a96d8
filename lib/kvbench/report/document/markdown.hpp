// SPDX-License-Identifier: Apache-2.0
// A report as Markdown.
#pragma once

#include <string>

#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// The text and tables of a report; of a figure the numbers.
std::string markdown(const Document& document);

}  // namespace kvbench::report
