// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/text/text.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/utf8.hpp>

namespace kvbench::report {
namespace {

/// Whether a spreadsheet would compute the text, not counting apostrophes before it, one of which protects it.
bool is_formula(const std::string& text) {
  const std::size_t first = text.find_first_not_of('\'');
  if (first == text.npos || std::string_view("=+-@\t\r\n").find(text[first]) == std::string_view::npos) return false;
  double number = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  return code == std::errc::invalid_argument || end != text.data() + text.size();
}

std::string csv_field(std::string text) {
  if (invalid_utf8(text) != std::string::npos) text = printable(text);
  if (is_formula(text)) text.insert(0, 1, '\'');
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    quoted += c;
    if (c == '"') quoted += c;
  }
  return quoted + '"';
}

/// Whether JSON has this number: not inf, and no digits before a 0.
bool is_json_number(std::string_view text) {
  const auto digits = [&] {
    const std::size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(count);
    return count;
  };
  const auto take = [&](std::string_view any) {
    const bool found = !text.empty() && any.find(text[0]) != any.npos;
    if (found) text.remove_prefix(1);
    return found;
  };
  take("-");
  const bool zero = text.starts_with('0');
  const std::size_t whole = digits();
  if (whole == 0 || (zero && whole > 1) || (take(".") && digits() == 0)) return false;
  if (take("eE")) {
    take("+-");
    if (digits() == 0) return false;
  }
  return text.empty();
}

}  // namespace

std::string csv_text(std::string field) {
  if (field.starts_with('\'') && is_formula(field)) field.erase(0, 1);
  return field;
}

std::string csv_line(std::span<const std::string> fields) {
  std::string out;
  for (const std::string& field : fields) {
    if (&field != fields.data()) out += ',';
    out += csv_field(field);
  }
  return out + '\n';
}

std::string json_text(std::string_view text) {
  constexpr std::string_view escaped = "\"\\\n\t\r", names = "\"\\ntr";
  std::string out = "\"";
  for (const char c : printable(text, "\n\t\r")) {
    if (const std::size_t at = escaped.find(c); at == escaped.npos)
      out += c;
    else
      out.append({'\\', names[at]});
  }
  return out + '"';
}

std::string json_value(const std::string& text, bool number) {
  if (text.empty()) return "null";
  return number && is_json_number(text) ? text : json_text(text);
}

std::string number_text(double value) {
  if (std::isnan(value)) return "";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{}", value);
}

std::string short_number(double value) {
  if (std::isnan(value)) return "-";
  if (std::abs(value) >= 1000 && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{:.3g}", value);
}

std::string three_digits(double value) {
  if (std::isnan(value)) return "";
  if (std::isinf(value) || value == 0) return short_number(value);
  if (std::abs(value) >= 1e6) return fmt::format("{:.2e}", value);
  if (std::abs(value) >= 99.95) return fmt::format("{:.0f}", value);
  return fmt::format("{:#.3g}", value);
}

std::string interval_text(double mean, double lo, double hi) {
  if (std::isnan(lo) || std::isnan(hi)) return three_digits(mean);
  return fmt::format("{} [{}, {}]", three_digits(mean), three_digits(lo), three_digits(hi));
}

std::string short_interval(double lo, double hi) {
  return std::isnan(lo) || std::isnan(hi) ? "-" : fmt::format("{}..{}", short_number(lo), short_number(hi));
}

std::string range_text(std::span<const double> values) {
  const auto [least, most] = std::ranges::minmax(values);
  const std::string a = short_number(least), b = short_number(most);
  return a == b ? a : a + " to " + b;
}

std::size_t invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_character(text.substr(i));
    const bool breaks = std::string_view("\t\n\r").find(text[i]) != std::string_view::npos;
    if (length == 0 || (is_control(text.substr(i, length)) && !breaks)) return i;
    i += length;
  }
  return std::string_view::npos;
}

std::string escape_xml(std::string_view text) {
  if (invalid_utf8(text) != std::string_view::npos) return escape_xml(printable(text));
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += c;
  }
  return out;
}

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
