// SPDX-License-Identifier: Apache-2.0
// A report as Markdown.
#pragma once

#include <span>
#include <string>

#include <kvbench/report/document/document.hpp>

namespace kvbench::report {

/// The text and tables of a report; of a figure the numbers.
std::string markdown(const Document& document);
/// The same of blocks alone.
std::string markdown(std::span<const Block> blocks);

}  // namespace kvbench::report
