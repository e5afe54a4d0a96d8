// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/provenance.hpp>

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include <kvbench/report/read/table_kind.hpp>

namespace kvbench::report {
namespace {

/// "138 (132 ok, 6 skipped)"
std::string count_text(const std::vector<const CsvRow*>& rows, const CsvTable& table, const char* state) {
  std::vector<std::pair<std::string, int>> counts;
  for (const CsvRow* row : rows) {
    const std::string& value = table.text(*row, state);
    const auto known = std::ranges::find(counts, value, &std::pair<std::string, int>::first);
    if (known == counts.end())
      counts.emplace_back(value, 1);
    else
      ++known->second;
  }
  if (counts.size() == 1 && (counts[0].first.empty() || counts[0].first == "ok")) return fmt::format("{}", rows.size());
  std::string parts;
  for (const auto& [value, count] : counts) parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", count, value);
  return fmt::format("{} ({})", rows.size(), parts);
}

}  // namespace

DocTable provenance_table(std::span<const CsvTable> tables) {
  const std::vector<const char*> keys = {"run",    "trace", "sha256",  "model", "protocol",
                                         "device", "isa",   "version", "commit"};
  DocTable out{.title = "Input files and their rows",
               .columns = {{"file"},
                           {"table"},
                           {"run"},
                           {"trace"},
                           {"sha256"},
                           {"model"},
                           {"protocol"},
                           {"device"},
                           {"isa"},
                           {"version"},
                           {"commit"},
                           {"rows", false, true}},
               .screen = true};
  constexpr const char* names[] = {"replay", "checks", "measures", "claims", "eval"};
  for (const CsvTable& table : tables) {
    const TableKind kind = kind_of(table);
    std::vector<std::vector<std::string>> order;
    std::map<std::vector<std::string>, std::vector<const CsvRow*>> groups;
    for (const CsvRow& row : table.rows) {
      std::vector<std::string> key;
      for (const char* column : keys) {
        const bool source = kind == TableKind::checks && std::string_view(column) == "trace";
        key.push_back(table.text(row, source ? "source" : column));
      }
      auto& group = groups[key];
      if (group.empty()) order.push_back(key);
      group.push_back(&row);
    }
    for (const auto& key : order) {
      std::vector<TableCell> cells = {table.name, names[static_cast<int>(kind)]};
      for (const std::string& value : key) cells.emplace_back(value);
      cells.emplace_back(count_text(groups[key], table,
                                    kind == TableKind::checks || kind == TableKind::claims ? "verdict" : "status"));
      out.rows.push_back(std::move(cells));
    }
  }
  return compact(std::move(out));
}

}  // namespace kvbench::report
