// SPDX-License-Identifier: Apache-2.0
#include <apps/kvbench/column_page.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <apps/common/output.hpp>

namespace kvbench::app {
namespace {

bool typed(std::span<const ColumnDoc> columns) {
  return std::ranges::any_of(columns, [](const ColumnDoc& c) { return !c.type.empty(); });
}

}  // namespace

std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|' || c == '<' || c == '*') out += '\\';  // they would end the table cell, open a tag, or emphasise
    out += c;
  }
  return out;
}

std::string columns_text(std::span<const ColumnDoc> columns) {
  const bool types = typed(columns);
  std::string out;
  for (const ColumnDoc& c : columns) {
    out += fmt::format("{:<22} ", c.key);
    if (types) out += fmt::format("{:<8} {:<6} ", c.type, c.unit);
    out += c.doc + "\n";
  }
  return out;
}

std::string columns_markdown(std::span<const ColumnDoc> columns) {
  const bool types = typed(columns);
  std::string out = types ? "| column | type | unit | meaning |\n| --- | --- | --- | --- |\n"
                          : "| column | meaning |\n| --- | --- |\n";
  for (const ColumnDoc& c : columns) {
    out += types ? fmt::format("| `{}` | {} | {} | {} |\n", c.key, c.type, c.unit, cell(c.doc))
                 : fmt::format("| `{}` | {} |\n", c.key, cell(c.doc));
  }
  return out;
}

void add_columns_flag(CLI::App* flags, const std::string& help, const std::string& format,
                      std::vector<ColumnDoc> columns) {
  flags->add_flag_callback(
      "--columns",
      [&format, columns = std::move(columns)] {
        print(format == "md" ? columns_markdown(columns) : columns_text(columns));
        throw CLI::Success();
      },
      help);
}

}  // namespace kvbench::app
