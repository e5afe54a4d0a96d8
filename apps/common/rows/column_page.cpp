// SPDX-License-Identifier: Apache-2.0
#include <apps/common/rows/column_page.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/report/columns/column.hpp>

#include <apps/common/command_line.hpp>
#include <apps/common/rows/output.hpp>

namespace kvbench::app {
namespace {

bool typed(std::span<const ColumnDoc> columns) {
  return std::ranges::any_of(columns, [](const ColumnDoc& c) { return !c.type.empty(); });
}

std::string text_of(const replay::Limits& limits) {
  if (std::isinf(limits.lo)) return "any";
  return std::isinf(limits.hi) ? fmt::format("from {}", limits.lo) : fmt::format("{} to {}", limits.lo, limits.hi);
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

std::string with_links(std::string text) {
  constexpr std::string_view word = "arXiv ";
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos;) {
    const std::size_t begin = at + word.size();
    const std::size_t length = text.find_first_not_of("0123456789.", begin) - begin;
    const std::string link = fmt::format("[arXiv {0}](https://arxiv.org/abs/{0})", text.substr(begin, length));
    text.replace(at, word.size() + std::min(length, text.size() - begin), link);
    at += link.size();
  }
  return text;
}

namespace {

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

}  // namespace

std::string columns_in(const std::string& format, std::span<const ColumnDoc> columns) {
  using report::value_of;
  static const std::vector<report::Column<ColumnDoc>> table = {{"column", "", value_of(&ColumnDoc::key)},
                                                               {"type", "", value_of(&ColumnDoc::type)},
                                                               {"unit", "", value_of(&ColumnDoc::unit)},
                                                               {"meaning", "", value_of(&ColumnDoc::doc)}};
  if (format == "json") return report::json_of(std::span<const report::Column<ColumnDoc>>(table), columns);
  return format == "md" ? columns_markdown(columns) : columns_text(columns);
}

std::string metrics_text(const MetricGroups& groups) {
  std::string out;
  for (const auto& metrics : groups) {
    if (!out.empty()) out += "\n";
    for (const replay::MetricInfo& m : metrics) {
      out += fmt::format("{:<22} {:<12} {:<10} {} ({})\n", m.name, name_of(m.better), text_of(m.limits), m.meaning,
                         m.applies);
    }
  }
  return out;
}

std::string metrics_markdown(const MetricGroups& groups) {
  std::string out;
  for (const auto& metrics : groups) {
    if (!out.empty()) out += "\n";
    out += "| metric | meaning | better | values | applies to |\n| --- | --- | --- | --- | --- |\n";
    for (const replay::MetricInfo& m : metrics) {
      out += fmt::format("| `{}` | {} | {} | {} | {} |\n", m.name, cell(std::string(m.meaning)), name_of(m.better),
                         text_of(m.limits), m.applies);
    }
  }
  return out;
}

void add_page_flag(CLI::App* flags, const std::string& name, const std::string& help, const std::string& format,
                   std::function<std::string()> text, std::function<std::string()> markdown) {
  flags->add_flag_callback(
      name,
      [flags, name, &format, text = std::move(text), markdown = std::move(markdown)] {
        require_alone(*flags, name, {"--format"});
        print(format == "md" ? markdown() : text());
        throw CLI::Success();
      },
      help);
}

void add_columns_flag(CLI::App* flags, const std::string& help, const std::string& format,
                      std::vector<ColumnDoc> columns) {
  add_page_flag(
      flags, "--columns", help, format, [columns, &format] { return columns_in(format, columns); },
      [columns] { return columns_in("md", columns); });
}

}  // namespace kvbench::app
