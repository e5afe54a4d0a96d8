// SPDX-License-Identifier: Apache-2.0
// Pieces that every table of text is made of.
#pragma once

#include <span>
#include <string>

namespace kvbench {

/// One CSV line with LF, quoted as RFC 4180 says.
std::string csv_line(std::span<const std::string> fields);

/// Three digits, for people; "-" for NaN.
std::string short_number(double value);

}  // namespace kvbench
