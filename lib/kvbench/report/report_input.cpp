// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/report_input.hpp>

#include <algorithm>
#include <map>
#include <set>

#include <kvbench/core/budget.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/report/text.hpp>

namespace kvbench {
namespace {

constexpr const char* needed_of_replays[] = {
    "trace",      "sha256",     "model",          "prompt",        "layer",       "kv_head",    "head",
    "query",      "protocol",   "device",         "method",        "params",      "budget",     "status",
    "reason",     "query_rows", "context_tokens", "budget_tokens", "total_bytes", "full_bytes", "rel_err_mean",
    "rel_err_lo", "rel_err_hi", "recall_mean",    "version",       "commit",      "isa"};
constexpr const char* needed_of_checks[] = {"claim",   "part",    "kind",       "source",   "prompt",       "layer",
                                            "kv_head", "verdict", "text",       "params",   "literal",      "tight",
                                            "data",    "bound",   "trivial",    "measured", "measured_q99", "failures",
                                            "trials",  "allowed", "p_adjusted", "version",  "commit"};
constexpr const char* needed_of_measures[] = {"trace",   "sha256", "model", "prompt", "layer",   "kv_head",
                                              "measure", "array",  "x",     "value",  "version", "commit"};
constexpr const char* needed_of_claims[] = {
    "claim",   "claim_verdict", "relation", "verdict",  "reason",  "metric",     "run",    "trace",  "prompt",
    "layer",   "head",          "a",        "budget_a", "b",       "budget_b",   "mean_a", "mean_b", "diff",
    "diff_lo", "diff_hi",       "ratio_lo", "ratio_hi", "p_value", "p_adjusted", "blocks", "seeds"};

void require_columns(const CsvTable& table, std::span<const char* const> needed, const char* writer) {
  for (const char* column : needed) {
    if (!table.has(column)) throw Error("{}: lacks the column '{}', which {} writes", table.file, column, writer);
  }
}

using Key = std::vector<std::string>;

Budget budget_of(const CsvTable& table, const CsvRow& row) {
  try {
    return Budget::parse(table.text(row, "budget"));
  } catch (const Error& error) {
    throw Error("{}:{}: column 'budget': {}", table.file, row.line, error.what());
  }
}

/// The cost that the budget limits; empty for budgets in tokens.
std::string cost_of(const CsvTable& table, const CsvRow& row) {
  const std::optional<CostKind> cost = budget_of(table, row).cost();
  if (!cost) return "";
  return *cost == CostKind::memory ? "memory" : *cost == CostKind::fast ? "fast memory" : "bytes read";
}

Key section_key(const CsvTable& table, const CsvRow& row) {
  Key key;
  for (const char* column : {"run", "trace", "sha256", "model", "protocol", "device", "isa"})
    key.push_back(table.text(row, column));
  key.push_back(cost_of(table, row));
  return key;
}

bool over_heads(const CsvTable& table, const CsvRow& row) {
  return std::ranges::all_of(std::initializer_list<const char*>{"kv_head", "head", "query"},
                             [&](const char* column) { return table.text(row, column) == "all"; });
}

ReplayRow replay_row(const CsvTable& table, const CsvRow& row) {
  const auto text = [&](const char* column) { return table.text(row, column); };
  const auto number = [&](const char* column) { return table.number(row, column); };
  ReplayRow r{.table = &table,
              .row = &row,
              .method = text("method"),
              .params = text("params"),
              .budget = text("budget"),
              .layer = text("layer"),
              .prompt = text("prompt"),
              .status = text("status"),
              .reason = text("reason"),
              .dense = text("dense") == "1"};
  r.context_tokens = number("context_tokens");
  r.budget_tokens = number("budget_tokens");
  r.bytes_share = number("total_bytes") / number("full_bytes");
  r.error = number("rel_err_mean");
  r.error_lo = number("rel_err_lo");
  r.error_hi = number("rel_err_hi");
  r.recall = number("recall_mean");
  const Budget budget = budget_of(table, row);
  const double whole = budget.is_bytes() ? number("full_bytes") : r.context_tokens;
  r.share = budget.is_share() ? budget.share() : static_cast<double>(budget.resolve(0, 1)) / whole;
  return r;
}

/// A section and all its rows, before the prompts that it shows are selected.
struct Gathered {
  ReplaySection section;
  std::vector<ReplayRow> rows;
};

/// Sections in which two files have the same configuration. Throws Error where one file has it twice.
std::set<Key> ambiguous(std::span<const CsvTable* const> tables) {
  std::map<Key, std::vector<const CsvTable*>> holders;  // tables with a configuration
  std::set<Key> keys;
  for (const CsvTable* table : tables) {
    for (const CsvRow& row : table->rows) {
      if (!over_heads(*table, row)) continue;
      const Key key = section_key(*table, row);
      Key whole = key;
      for (const char* column : {"prompt", "layer", "method", "params", "budget"}) whole.push_back(table->text(row, column));
      std::vector<const CsvTable*>& known = holders[whole];
      if (std::ranges::count(known, table) > 0) {
        throw Error("{}:{}: the row of {} {} at {} appears twice", table->file, row.line, table->text(row, "method"),
                    table->text(row, "params"), table->text(row, "budget"));
      }
      if (!known.empty()) keys.insert(key);
      known.push_back(table);
    }
  }
  return keys;
}

/// A section shows the rows over all prompts; without such rows it is split into one section per prompt.
void finish(Gathered gathered, std::vector<ReplaySection>& out) {
  std::vector<std::string> prompts;
  for (const ReplayRow& r : gathered.rows) add_distinct(prompts, r.prompt);
  const bool several = prompts.size() > 1;
  if (std::ranges::find(prompts, "all") != prompts.end()) prompts = {"all"};
  for (const std::string& prompt : prompts) {
    ReplaySection section = gathered.section;
    if (several) section.prompt = prompt;
    if (&prompt != prompts.data()) section.finer = 0;
    for (const ReplayRow& r : gathered.rows) {
      const bool own = r.prompt == prompt, all = r.layer == "all";
      if (!r.ok() && (own || prompt == "all")) section.broken.push_back(r);
      if (own) (all ? section.overall : section.layers).push_back(r);
      section.finer += prompt == "all" && !own;
    }
    out.push_back(std::move(section));
  }
}

}  // namespace

TableKind kind_of(const CsvTable& table) {
  if (table.has("claim_verdict")) {
    require_columns(table, needed_of_claims, "a sweep of a file with claims");
    return TableKind::claims;
  }
  if (table.has("claim") || table.has("verdict")) {
    require_columns(table, needed_of_checks, "kvbench validate");
    return TableKind::checks;
  }
  if (table.has("measure") || table.has("array")) {
    require_columns(table, needed_of_measures, "a sweep with `measure`");
    return TableKind::measures;
  }
  if (table.has("method") || table.has("rel_err_mean")) {
    require_columns(table, needed_of_replays, "kvbench replay");
    return TableKind::replay;
  }
  throw Error(
      "{}: is not a table of kvbench; its header has none of the columns 'method' (replay and sweep), 'claim' (validate) and "
      "'measure' (measures)",
      table.file);
}

std::vector<ReplaySection> replay_sections(std::span<const CsvTable* const> tables) {
  const std::set<Key> by_file = ambiguous(tables);
  std::vector<Gathered> all;
  std::map<Key, std::size_t> known;
  for (const CsvTable* table : tables) {
    for (const CsvRow& row : table->rows) {
      Key key = section_key(*table, row);
      const std::string file = by_file.contains(key) ? table->name : "";
      const Key parts = key;
      key.push_back(file);
      const auto [at, fresh] = known.emplace(std::move(key), all.size());
      if (fresh) {
        all.push_back({{.run = parts[0],
                        .trace = parts[1],
                        .sha256 = parts[2],
                        .model = parts[3],
                        .protocol = parts[4],
                        .device = parts[5],
                        .isa = parts[6],
                        .cost = parts[7],
                        .prompt = "",
                        .file = file},
                       {}});
      }
      Gathered& into = all[at->second];
      if (over_heads(*table, row))
        into.rows.push_back(replay_row(*table, row));
      else
        ++into.section.finer;
    }
  }
  std::vector<ReplaySection> sections;
  for (Gathered& gathered : all) finish(std::move(gathered), sections);
  return sections;
}

}  // namespace kvbench
