// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/text/cell.hpp>

#include <charconv>
#include <cmath>

#include <kvbench/core/error.hpp>

namespace kvbench::report {

void CsvCell::refuse(std::string_view what) const {
  throw Error("{}:{}: column '{}' holds '{}', which is not {}", file, line, column, text, what);
}

double CsvCell::number() const {
  if (text.empty()) return NAN;
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || std::isnan(value)) refuse("a number");
  return value;
}

std::int64_t CsvCell::whole(double lo, double hi, std::string_view what) const {
  if (text.empty()) return 0;
  const double value = number();
  if (!(value >= lo && value <= hi) || value != std::floor(value)) refuse(what);
  return static_cast<std::int64_t>(value);
}

Budget CsvCell::budget() const {
  try {
    return Budget::parse(text);
  } catch (const Error& error) {
    throw Error("{}:{}: column '{}': {}", file, line, column, error.what());
  }
}

}  // namespace kvbench::report
