// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/text.hpp>

#include <algorithm>
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

/// Length in bytes of the character that begins with `lead`; 0 where none does.
std::size_t utf8_length(unsigned char lead) {
  if (lead < 0x80) return lead >= 0x20 || lead == '\t' || lead == '\n' || lead == '\r' ? 1 : 0;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
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

std::string markdown_line(std::span<const std::string> cells) {
  std::string out = "|";
  for (const std::string& cell : cells) out += " " + cell + " |";
  return out + "\n";
}

std::string markdown_rows(const TextRows& rows, bool (*is_left)(std::size_t column)) {
  std::vector<std::string> rules;
  for (std::size_t c = 0; c < rows.front().size(); ++c) rules.emplace_back(is_left(c) ? "---" : "---:");
  std::string out;
  for (const auto& row : rows) {
    std::vector<std::string> cells;
    for (const std::string& text : row) {
      std::string& cell = cells.emplace_back();
      for (const char c : text) {
        if (c == '|') cell += '\\';
        cell += c == '\n' ? ' ' : c;
      }
    }
    out += markdown_line(cells);
    if (&row == rows.data()) out += markdown_line(rules);
  }
  return out;
}

std::string aligned_rows(const TextRows& rows, bool (*is_left)(std::size_t column)) {
  const std::size_t columns = rows.front().size();
  std::vector<std::size_t> width(columns);
  for (const auto& row : rows) {
    const std::size_t counted = row.size() < columns ? row.size() - 1 : columns;
    for (std::size_t c = 0; c < counted; ++c) width[c] = std::max(width[c], row[c].size());
  }
  std::string out;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      const bool left = row.size() < columns || is_left(c);
      if (c > 0) out += "  ";
      out += left ? fmt::format("{:<{}}", row[c], width[c]) : fmt::format("{:>{}}", row[c], width[c]);
    }
    while (out.back() == ' ') out.pop_back();
    out += '\n';
  }
  return out;
}

std::string number_text(double value) {
  if (std::isnan(value)) return "";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  if (value == std::floor(value) && std::abs(value) < 1e15) return fmt::format("{:.0f}", value);
  return fmt::format("{}", value);
}

std::string short_number(double value) {
  if (std::isnan(value)) return "-";
  if (std::abs(value) >= 1000) return fmt::format("{:.0f}", value);
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

std::string range_text(std::span<const double> values) {
  const auto [least, most] = std::ranges::minmax(values);
  const std::string a = short_number(least), b = short_number(most);
  return a == b ? a : a + " to " + b;
}

std::size_t invalid_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(static_cast<unsigned char>(text[i]));
    if (length == 0 || i + length > text.size()) return i;
    for (std::size_t k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(text[i + k]) & 0xC0) != 0x80) return i;
    }
    i += length;
  }
  return std::string_view::npos;
}

std::string escape_xml(std::string_view text) {
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

}  // namespace kvbench
