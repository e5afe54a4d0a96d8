// SPDX-License-Identifier: Apache-2.0
// Descriptions of the columns of a table: --columns of the commands that write it, and docs/columns.md.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace kvbench::app {

/// Type and unit are empty for tables that do not state them.
struct ColumnDoc {
  std::string key, type, unit, doc;
};

/// Text escaped for a cell of a Markdown table.
std::string cell(const std::string& text);

/// One line per column, aligned for a terminal.
std::string columns_text(std::span<const ColumnDoc> columns);
/// The same as a Markdown table.
std::string columns_markdown(std::span<const ColumnDoc> columns);

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

/// Adds --columns, which prints the descriptions in the format of --format (`format`) and ends the program. Add it
/// after --format.
void add_columns_flag(CLI::App* flags, const std::string& help, const std::string& format,
                      std::vector<ColumnDoc> columns);

}  // namespace kvbench::app
