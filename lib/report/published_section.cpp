// SPDX-License-Identifier: Apache-2.0
// Numbers that papers print, beside the rows of ours that they are to be compared with.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/report/report_parts.hpp>
#include <kvbench/report/text.hpp>

namespace kvbench {
namespace {

constexpr const char* all_by_default[] = {"layer", "kv_head", "head", "query"};

bool matches(const CsvTable& table, const CsvRow& row, const Published::Filter& filter) {
  const auto named = [&](std::string_view column) {
    return std::ranges::any_of(filter, [&](const auto& pair) { return pair.first == column; });
  };
  for (const char* column : all_by_default) {
    if (!named(column) && table.text(row, column) != "all") return false;
  }
  return std::ranges::all_of(
      filter, [&](const auto& pair) { return table.has(pair.first) && table.text(row, pair.first) == pair.second; });
}

/// Rows of a filter. Where it names no prompt and some are over all prompts, only those.
std::vector<std::pair<const CsvTable*, const CsvRow*>> found(std::span<const CsvTable* const> tables,
                                                             const Published::Filter& filter) {
  std::vector<std::pair<const CsvTable*, const CsvRow*>> rows;
  for (const CsvTable* table : tables) {
    for (const CsvRow& row : table->rows) {
      if (matches(*table, row, filter)) rows.emplace_back(table, &row);
    }
  }
  const bool prompt_named = std::ranges::any_of(filter, [](const auto& pair) { return pair.first == "prompt"; });
  const auto over_all = [](const auto& row) { return row.first->text(*row.second, "prompt") == "all"; };
  if (!prompt_named && std::ranges::any_of(rows, over_all))
    std::erase_if(rows, [&](const auto& row) { return !over_all(row); });
  return rows;
}

/// "0.117 [0.112, 0.122]" where NAME_mean has NAME_lo and NAME_hi beside it.
std::string ours(const CsvTable& table, const CsvRow& row, const std::string& metric) {
  if (!table.has(metric))
    throw Error("{}: lacks the column '{}', which a published number is compared with", table.file, metric);
  if (table.text(row, "status") != "ok") return table.text(row, "status") + ": " + table.text(row, "reason");
  const double value = table.number(row, metric);
  if (std::isnan(value)) return "does not apply";
  if (!metric.ends_with("_mean")) return short_number(value);
  const std::string name = metric.substr(0, metric.size() - 5);
  return interval_text(value, table.number(row, name + "_lo"), table.number(row, name + "_hi"));
}

std::string filter_text(const Published::Filter& filter) {
  std::string out;
  for (const auto& [column, value] : filter)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", column, value.empty() ? "(none)" : value);
  return out;
}

}  // namespace

std::vector<Block> published_blocks(std::span<const Published> published, std::span<const CsvTable* const> tables) {
  DocTable out{.title = "Published numbers beside ours",
               .columns = {{"claim", false, true},
                           {"the paper prints", false, true},
                           {"our row", false, true},
                           {"trace"},
                           {"metric"},
                           {"ours, mean [95 % interval]", true},
                           {"why they may differ", false, true}},
               .rows = {},
               .merged = 2};
  for (const Published& p : published) {
    for (const Published::Filter& filter : p.rows) {
      const auto rows = found(tables, filter);
      if (rows.empty())
        out.rows.push_back({p.claim, p.paper, filter_text(filter), "", p.metric, {"no such row", Tone::bad}, p.why});
      for (const auto& [table, row] : rows)
        out.rows.push_back(
            {p.claim, p.paper, filter_text(filter), table->text(*row, "trace"), p.metric, ours(*table, *row, p.metric), p.why});
    }
  }
  return {Heading{2, "What the paper says"}, std::move(out)};
}

}  // namespace kvbench
