// SPDX-License-Identifier: Apache-2.0
// Pages in Markdown. Descriptions of the columns of a table and of the metrics: --columns of the commands that write
// it, --metrics of compare, docs/columns.md and docs/results.md.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <kvbench/replay/metrics/info.hpp>

namespace kvbench::app {

/// Type and unit are empty for tables that do not state them.
struct ColumnDoc {
  std::string key, type, unit, doc;
};

/// Text escaped for a cell of a Markdown table.
std::string cell(const std::string& text);
/// The text with every "arXiv 2309.17453" as a link.
std::string with_links(std::string text);

/// json: an array of objects, for programs; md: a Markdown table; else one line per column, aligned for a terminal.
std::string columns_in(const std::string& format, std::span<const ColumnDoc> columns);

/// The descriptions of `columns`, which have at least the members key and doc.
template <class Columns>
std::vector<ColumnDoc> docs_of(const Columns& columns) {
  std::vector<ColumnDoc> docs;
  for (const auto& column : columns) {
    if constexpr (requires { column.type; })
      docs.push_back({column.key, column.type, column.unit, column.doc});
    else
      docs.push_back({column.key, "", "", column.doc});
  }
  return docs;
}

/// The metrics in groups, such as those of attention and of damage, aligned for a terminal.
using MetricGroups = std::vector<std::vector<replay::MetricInfo>>;
std::string metrics_text(const MetricGroups& groups);
/// The same as Markdown: a table per group.
std::string metrics_markdown(const MetricGroups& groups);

/// Adds a flag that prints a description in the format of --format (`format`) and ends the program. Add it after
/// --format.
void add_page_flag(CLI::App* flags, const std::string& name, const std::string& help, const std::string& format,
                   std::function<std::string()> text, std::function<std::string()> markdown);

/// Adds --columns, which prints the descriptions in the format of --format (`format`) and ends the program. Add it
/// after --format.
void add_columns_flag(CLI::App* flags, const std::string& help, const std::string& format,
                      std::vector<ColumnDoc> columns);

}  // namespace kvbench::app
