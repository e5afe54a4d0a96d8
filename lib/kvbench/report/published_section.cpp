// SPDX-License-Identifier: Apache-2.0
// Numbers that papers print, beside the rows of ours that they are to be compared with.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/statistics.hpp>
#include <kvbench/report/report_parts.hpp>
#include <kvbench/report/text.hpp>

namespace kvbench {
namespace {

constexpr const char* all_by_default[] = {"layer", "kv_head", "head", "query"};

bool names(const Published::Filter& filter, std::string_view column) {
  return std::ranges::any_of(filter, [&](const auto& pair) { return pair.first == column; });
}

/// Every column of the filter has its value.
bool agrees(const CsvTable& table, const CsvRow& row, const Published::Filter& filter) {
  return std::ranges::all_of(
      filter, [&](const auto& pair) { return table.has(pair.first) && table.text(row, pair.first) == pair.second; });
}

bool matches(const CsvTable& table, const CsvRow& row, const Published::Filter& filter) {
  for (const char* column : all_by_default) {
    if (!names(filter, column) && table.text(row, column) != "all") return false;
  }
  return agrees(table, row, filter);
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
  const auto over_all = [](const auto& row) { return row.first->text(*row.second, "prompt") == "all"; };
  if (!names(filter, "prompt") && std::ranges::any_of(rows, over_all))
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

/// The mean over heads of a measure for each trace, with its extremes.
std::vector<std::pair<std::string, std::string>> measured_means(std::span<const CsvTable* const> tables,
                                                                const Published::Filter& filter) {
  std::vector<std::pair<std::string, std::vector<double>>> traces;
  for (const CsvTable* table : tables) {
    for (const CsvRow& row : table->rows) {
      if (!agrees(*table, row, filter)) continue;
      const std::string& trace = table->text(row, "trace");
      auto known = std::ranges::find(traces, trace, &std::pair<std::string, std::vector<double>>::first);
      if (known == traces.end()) known = traces.insert(traces.end(), {trace, {}});
      known->second.push_back(table->number(row, "value"));
    }
  }
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [trace, values] : traces) {
    const auto [least, most] = std::ranges::minmax(values);
    out.emplace_back(trace, fmt::format("{} ({} to {} over {} heads)", short_number(mean(values)), short_number(least),
                                        short_number(most), values.size()));
  }
  return out;
}

}  // namespace

std::vector<Block> published_blocks(std::span<const Published> published, std::span<const CsvTable* const> replays,
                                    std::span<const CsvTable* const> measures) {
  std::vector<Block> blocks = {Heading{2, "What the paper says"}};
  for (std::size_t i = 0; i < published.size(); ++i) {
    const Published& p = published[i];
    const auto same_claim = [&](const Published& other) { return other.claim == p.claim && other.why == p.why; };
    if (i == 0 || !same_claim(published[i - 1])) {
      blocks.push_back(DocTable{.title = p.claim,
                                .columns = {{"the paper prints", false, true},
                                            {"our row", false, true},
                                            {"trace"},
                                            {"metric"},
                                            {"ours, mean [95 % interval]", true}},
                                .rows = {},
                                .merged = 1});
    }
    auto& rows = std::get<DocTable>(blocks.back()).rows;
    for (const Published::Filter& filter : p.rows) {
      const auto add = [&](const std::string& trace, TableCell value) {
        rows.push_back({p.paper, filter_text(filter), trace, p.metric, std::move(value)});
      };
      const auto replayed = found(replays, filter);
      const auto heads =
          names(filter, "measure") ? measured_means(measures, filter) : decltype(measured_means(measures, filter)){};
      if (replayed.empty() && heads.empty()) add("", {"no such row", Tone::bad});
      for (const auto& [table, row] : replayed) add(table->text(*row, "trace"), ours(*table, *row, p.metric));
      for (const auto& [trace, value] : heads) add(trace, value);
    }
    const bool last = i + 1 == published.size() || !same_claim(published[i + 1]);
    if (last && !p.why.empty()) blocks.push_back(Paragraph{"Why they may differ: " + p.why + "."});
  }
  return blocks;
}

}  // namespace kvbench
