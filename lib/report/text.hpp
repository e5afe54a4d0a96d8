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

/// Three digits, zeros at the end too, so that columns of numbers are equally precise: "0.480"; "2.50e+07" from a
/// million on; "" for NaN.
std::string three_digits(double value);

/// "0.117 [0.112, 0.122]", or the mean alone where there is no interval.
std::string interval_text(double mean, double lo, double hi);

/// "5.41 to 27.4", or the one number that all are; `values` are not empty.
std::string range_text(std::span<const double> values);

/// Position of the first byte that is not UTF-8 text (control characters but tab and line ends are none); npos: all is well.
std::size_t invalid_utf8(std::string_view text);

/// For HTML and SVG, in text and in quoted attributes.
std::string escape_xml(std::string_view text);

}  // namespace kvbench
