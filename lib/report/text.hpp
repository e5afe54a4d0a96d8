// SPDX-License-Identifier: Apache-2.0
// Pieces that every table of text is made of.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace kvbench {

/// One CSV line with LF, quoted as RFC 4180 says.
std::string csv_line(std::span<const std::string> fields);

/// Three digits, for people; "-" for NaN.
std::string short_number(double value);

/// "0.117 [0.112, 0.122]", or the mean alone where there is no interval.
std::string interval_text(double mean, double lo, double hi);

/// Position of the first byte that is not UTF-8 text (control characters but tab and line ends are none); npos: all is well.
std::size_t invalid_utf8(std::string_view text);

/// For HTML and SVG, in text and in quoted attributes.
std::string escape_xml(std::string_view text);

}  // namespace kvbench
