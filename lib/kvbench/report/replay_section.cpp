// SPDX-License-Identifier: Apache-2.0
// A section of a replay or sweep: figures, the table of errors, rows without results, notes, and all columns.
#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include <kvbench/report/replay_series.hpp>
#include <kvbench/report/report_parts.hpp>
#include <kvbench/report/text.hpp>

namespace kvbench {
namespace {

std::string heading_of(const ReplaySection& s) {
  std::string out = s.run.empty() ? "Replay" : "Run " + s.run;
  if (!s.file.empty()) out += " of " + s.file;
  out += fmt::format(": {}, {}", s.trace, s.protocol);
  if (!s.cost.empty()) out += ", at equal " + s.cost;
  if (!s.prompt.empty()) out += ", prompt " + s.prompt;
  return out;
}

std::string introduction(const ReplaySection& s) {
  std::string out = fmt::format("Attention of {} ({}, sha256 {}), protocol {}, computed on {} ({}).", s.model, s.trace,
                                s.sha256, s.protocol, s.device, s.isa);
  if (s.finer > 0) out += fmt::format(" {} rows per head, query or single prompt are not shown.", s.finer);
  return out;
}

DocTable error_table(const std::vector<Series>& all, const std::vector<std::string>& budgets) {
  DocTable table{
      .title = "Mean relative error [95 % interval] by budget", .columns = {{"method"}, {"parameters"}, {"kind"}}, .rows = {}};
  for (const std::string& budget : budgets) table.columns.push_back({budget, true});
  for (const Series& series : all) {
    std::vector<TableCell> cells = {series.method, series.params, series.reference ? "reference" : series.kind};
    for (const std::string& budget : budgets) {
      const auto at = std::ranges::find(series.rows, budget, [](const ReplayRow* r) { return r->budget; });
      if (at == series.rows.end()) {
        cells.emplace_back("");
        continue;
      }
      const ReplayRow& r = **at;
      cells.emplace_back(r.ok() ? interval_text(r.error, r.error_lo, r.error_hi) : r.status, r.ok() ? Tone::plain : Tone::dim);
    }
    table.rows.push_back(std::move(cells));
  }
  return compact(std::move(table));
}

/// One row per method, status and reason, with the budgets and layers.
DocTable reasons(const std::vector<const ReplayRow*>& rows, const char* title) {
  struct Entry {
    const ReplayRow* first;
    std::vector<std::string> budgets, layers, prompts;
    int count = 0;
  };
  std::vector<Entry> entries;
  for (const ReplayRow* r : rows) {
    auto at = std::ranges::find_if(entries, [&](const Entry& e) {
      return e.first->method == r->method && e.first->params == r->params && e.first->status == r->status &&
             e.first->reason == r->reason;
    });
    if (at == entries.end()) at = entries.insert(entries.end(), Entry{.first = r, .budgets = {}, .layers = {}, .prompts = {}});
    add_distinct(at->budgets, r->budget);
    add_distinct(at->layers, r->layer);
    add_distinct(at->prompts, r->prompt);
    ++at->count;
  }
  DocTable table{.title = title,
                 .columns = {{"method"},
                             {"parameters"},
                             {"budgets"},
                             {"layers"},
                             {"prompts"},
                             {"rows", true},
                             {"status"},
                             {"reason", false, true}},
                 .rows = {}};
  for (const Entry& e : entries) {
    const Tone tone = e.first->status == "failed" ? Tone::bad : Tone::plain;
    table.rows.push_back({e.first->method,
                          e.first->params,
                          fmt::format("{}", fmt::join(e.budgets, ", ")),
                          fmt::format("{}", fmt::join(e.layers, ", ")),
                          fmt::format("{}", fmt::join(e.prompts, ", ")),
                          fmt::format("{}", e.count),
                          {e.first->ok() ? "" : e.first->status, tone},
                          e.first->reason});
  }
  return compact(std::move(table));
}

/// All columns that have a value in some row.
DocTable all_columns(const ReplaySection& section) {
  DocTable out{.title = "All columns of the rows over all layers", .columns = {}, .rows = {}, .folded = true};
  std::vector<std::string> names = {"method", "params", "budget"};
  const auto used = [&](const std::string& column) {
    return std::ranges::any_of(section.overall, [&](const ReplayRow& r) { return !r.text(column.c_str()).empty(); });
  };
  for (const ReplayRow& r : section.overall) {
    for (const std::string& column : r.table->columns) {
      if (used(column)) add_distinct(names, column);
    }
  }
  for (const std::string& name : names) out.columns.push_back({name, name != "method" && name != "params", name == "reason"});
  for (const ReplayRow& r : section.overall) {
    std::vector<TableCell> cells;
    for (const std::string& name : names) cells.emplace_back(r.text(name.c_str()));
    out.rows.push_back(std::move(cells));
  }
  return out;
}

}  // namespace

std::vector<Block> replay_blocks(const ReplaySection& section) {
  std::vector<Block> blocks = {Heading{2, heading_of(section)}, Paragraph{introduction(section)}};
  const auto add = [&](std::vector<Block> more) { std::ranges::move(more, std::back_inserter(blocks)); };
  const std::vector<Series> all = series_of(section);
  const std::vector<std::string> budgets = budgets_of(section);
  if (!section.broken.empty()) {
    std::vector<const ReplayRow*> rows;
    for (const ReplayRow& r : section.broken) rows.push_back(&r);
    blocks.emplace_back(reasons(rows, "Rows without results"));
  }
  add(curve_figures(all, budgets));
  if (!section.overall.empty()) blocks.emplace_back(error_table(all, budgets));
  add(layer_figures(all, budgets));
  std::vector<const ReplayRow*> notes;
  for (const ReplayRow& r : section.overall) {
    if (r.ok() && !r.reason.empty()) notes.push_back(&r);
  }
  if (!notes.empty()) blocks.emplace_back(reasons(notes, "Notes on rows with results"));
  if (!section.overall.empty()) blocks.emplace_back(all_columns(section));
  return blocks;
}

}  // namespace kvbench
