// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/claims/sections.hpp>

#include <algorithm>
#include <cstdlib>

#include <kvbench/core/error.hpp>

namespace kvbench::report {
namespace {

constexpr std::string_view not_shown[] = {"listing", "about", "grey", "link"};

/// A path below the folder of the page, or of a folder beside it, as a table of somebody else may have another.
const std::string& checked_link(const CsvTable& table, const CsvRow& row) {
  const std::string& link = table.text(row, "link");
  if (link.starts_with("/") || link.find_first_of(":\\?#") != link.npos)
    table.cell(row, "link").refuse("a relative path");
  return link;
}

/// Whether all cells that are not empty are numbers, and some are.
bool has_numbers(const CsvTable& table, const std::string& column) {
  bool some = false;
  const auto fits = [&](const CsvRow& row) {
    const std::string& text = table.text(row, column);
    char* end = nullptr;
    if (!text.empty()) some = true, static_cast<void>(std::strtod(text.c_str(), &end));
    return text.empty() || *end == '\0';
  };
  return std::ranges::all_of(table.rows, fits) && some;
}

}  // namespace

std::vector<Section> listing_sections(std::span<const CsvTable* const> tables) {
  std::vector<Section> out;
  for (const CsvTable* table : tables) {
    std::vector<RowColumn<CsvRow>> columns;
    for (const std::string& name : table->columns) {
      if (std::ranges::find(not_shown, name) != std::end(not_shown)) continue;
      columns.push_back({{.title = name, .number = has_numbers(*table, name)}, [table, name](const CsvRow& row) {
                           const bool grey = !table->text(row, "grey").empty();
                           return TableCell(table->text(row, name), grey ? Tone::dim : Tone::plain);
                         }});
      const auto longest = [&](const CsvRow& row) { return table->text(row, name).size() > 40; };
      columns.back().head.prose = std::ranges::any_of(table->rows, longest);
    }
    if (columns.empty()) throw Error("{}: has no column to show beside 'listing'", table->file);
    DocTable shown{.title = table->text(table->rows.front(), "about"), .sortable = true, .screen = true};
    shown = filled<CsvRow>(std::move(shown), columns, table->rows);
    for (std::size_t r = 0; r < table->rows.size(); ++r) {
      if (!shown.rows[r].empty()) shown.rows[r].front().link = checked_link(*table, table->rows[r]);
    }
    out.push_back({.title = table->text(table->rows.front(), "listing"), .blocks = {std::move(shown)}});
  }
  return out;
}

}  // namespace kvbench::report
