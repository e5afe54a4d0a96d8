// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/text.hpp>

#include <cmath>

#include <fmt/format.h>

namespace kvbench {
namespace {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') quoted += c;
  }
  return quoted + '"';
}

}  // namespace

std::string csv_line(std::span<const std::string> fields) {
  std::string out;
  for (const std::string& field : fields) {
    if (&field != fields.data()) out += ',';
    out += csv_field(field);
  }
  return out + '\n';
}

std::string short_number(double value) {
  if (std::isnan(value)) return "-";
  if (std::abs(value) >= 1000) return fmt::format("{:.0f}", value);
  return fmt::format("{:.3g}", value);
}

}  // namespace kvbench
