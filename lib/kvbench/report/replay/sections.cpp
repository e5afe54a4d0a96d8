// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/replay/sections.hpp>

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include <kvbench/compare/comparison.hpp>
#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/report/columns/records.hpp>
#include <kvbench/report/read/rows.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

using Key = std::vector<std::string>;

/// The columns that tell the rows of a section apart.
constexpr const char* identity[] = {"trace", "sha256", "prompt", "layer",  "kv_head", "head",
                                    "query", "seed",   "method", "params", "budget",  "refit"};
constexpr const char* figures[] = {"status",     "reason",      "rel_err_mean", "rel_err_lo",
                                   "rel_err_hi", "total_bytes", "bytes_read"};

Key key_of(const CsvTable& table, const CsvRow& row, std::span<const char* const> columns) {
  Key key;
  for (const char* column : columns) key.push_back(table.has(column) ? table.text(row, column) : "");
  return key;
}

Key section_key(const CsvTable& table, const CsvRow& row) {
  constexpr const char* columns[] = {"run", "protocol", "device"};
  return key_of(table, row, columns);
}

bool is_all(const CsvTable& table, const CsvRow& row, const char* column) { return table.text(row, column) == "all"; }

ReplayRow replay_row(const RowReader<replay::Record>& read, const CsvTable& table, const CsvRow& row) {
  ReplayRow r{read(row), &table, &row};
  r.held = r.bytes.of(CostKind::memory) / r.bytes.full;
  r.read = r.bytes.read / r.bytes.full;
  r.seconds = r.compress_s + r.attend_s;
  const replay::Summary& error = r.of(replay::metric("rel_err"));
  r.error = error.mean, r.error_lo = error.lo, r.error_hi = error.hi, r.median = error.p50;
  r.recall = r.of(replay::metric("recall")).mean;
  if (r.budget == Budget()) table.cell(row, "budget").refuse("a budget");
  const double whole = r.budget.is_bytes() ? r.bytes.full : r.context_tokens;
  r.share = r.budget.is_share() ? r.budget.share() : static_cast<double>(r.budget.resolve(0, 1)) / whole;
  return r;
}

/// Finds rows that several files have: with equal figures they are one row, with other figures rows of different
/// methods.
class Duplicates {
 public:
  /// Throws Error where a file has a row twice.
  explicit Duplicates(std::span<const CsvTable* const> tables) {
    for (const CsvTable* table : tables) {
      for (const CsvRow& row : table->rows) add(*table, row);
    }
  }

  /// Whether the row repeats that of another file.
  bool repeats(const CsvTable& table, const CsvRow& row) const {
    return !differs(table, row) && first_.at(key(table, row)).second != &row;
  }
  /// Whether several files have other figures of the row's method.
  bool differs(const CsvTable& table, const CsvRow& row) const { return different_.contains(method(table, row)); }

 private:
  using Place = std::pair<const CsvTable*, const CsvRow*>;

  static Key key(const CsvTable& table, const CsvRow& row) {
    Key out = section_key(table, row);
    std::ranges::move(key_of(table, row, identity), std::back_inserter(out));
    return out;
  }
  static Key method(const CsvTable& table, const CsvRow& row) {
    constexpr const char* columns[] = {"run", "protocol", "device", "trace", "sha256", "method", "params"};
    return key_of(table, row, columns);
  }

  void add(const CsvTable& table, const CsvRow& row) {
    const auto [known, fresh] = first_.emplace(key(table, row), Place(&table, &row));
    if (fresh) return;
    const auto [other, same] = known->second;
    if (other == &table) {
      throw Error("{}:{}: the row of {} {} at {} appears twice", table.file, row.line, table.text(row, "method"),
                  table.text(row, "params"), table.text(row, "budget"));
    }
    if (key_of(table, row, figures) != key_of(*other, *same, figures)) different_.insert(method(table, row));
  }

  std::map<Key, Place> first_;
  std::set<Key> different_;
};

/// Tells the methods of several files apart by the names of the files.
void name_file(ReplayRow& row) {
  row.of_file = true;
  row.params += fmt::format("{}from {}", row.params.empty() ? "" : ";", row.table->name);
}

/// The tests of a CSV are against the best row of its own file. They count where that is the best row of all files.
void keep_valid_tests(std::vector<ReplayRow>& rows) {
  std::map<Budget, const ReplayRow*> best;  // of each budget
  for (const ReplayRow& r : rows) {
    if (!r.ok() || compare::is_baseline(r.method) || !std::isfinite(r.error)) continue;
    const ReplayRow*& known = best[r.budget];
    if (known == nullptr || r.error < known->error) known = &r;
  }
  for (ReplayRow& r : rows) {
    const ReplayRow* first = best[r.budget];
    const bool same = first != nullptr && r.best == compare::label_of({first->method, first->text("params"), {}}) &&
                      (!first->of_file || first->table == r.table);
    if (!same) r.tied.reset(), r.best.clear();
  }
}

/// The rows of a trace, before the prompts that are shown are selected.
struct Gathered {
  ReplayPart part;
  std::vector<ReplayRow> rows;
};

/// Puts a row where the part shows it; `own`: the row is of the part's prompt or of all prompts.
void add_row(const ReplayRow& r, bool own, ReplayPart& part) {
  const bool head = r.query_head.has_value();
  if (!r.ok() && !head) part.broken.push_back(r);
  if (r.refit != replay::Refit::none) {
    if (own && !head && !r.layer && r.ok()) part.hindsight.push_back(r);
    return;
  }
  if (head) part.heads.push_back(r);
  if (own && !head) (r.layer ? part.layers : part.overall).push_back(r);
  if (!own && !head && !r.layer) part.texts.push_back(r);
  part.finer += !own && !head;
}

/// A part shows the rows over all prompts; without such rows there is one part per prompt.
void finish(const Gathered& gathered, std::vector<ReplayPart>& out) {
  OrderedMap<std::string, ReplayPart> parts;
  for (const ReplayRow& r : gathered.rows) {
    if (!r.query_head && parts.find(r.prompt) == nullptr) parts[r.prompt] = gathered.part;
  }
  const bool several = parts.items().size() > 1, joined = parts.find("all") != nullptr;
  for (const ReplayRow& r : gathered.rows) {
    ReplayPart* const part = parts.find(joined ? "all" : r.prompt);
    if (part != nullptr) add_row(r, !joined || r.prompt == "all", *part);
  }
  for (auto& [prompt, part] : parts.items()) {
    if (joined && prompt != "all") continue;
    if (several) part.prompt = prompt;
    keep_valid_tests(part.overall);
    out.push_back(std::move(part));
  }
}

}  // namespace

std::vector<ReplaySection> replay_sections(std::span<const CsvTable* const> tables) {
  const Duplicates duplicates(tables);
  OrderedMap<Key, OrderedMap<Key, Gathered>> sections;
  for (const CsvTable* table : tables) {
    const RowReader<replay::Record> read(*table, record_columns());
    for (const CsvRow& row : table->rows) {
      if (duplicates.repeats(*table, row)) continue;
      const auto text = [&](const char* column) { return table->text(row, column); };
      Gathered& into = sections[section_key(*table, row)][{text("trace"), text("sha256")}];
      into.part.trace = text("trace"), into.part.sha256 = text("sha256"), into.part.model = text("model");
      if (!is_all(*table, row, "query")) {
        ++into.part.finer;
        continue;
      }
      into.rows.push_back(replay_row(read, *table, row));
      if (duplicates.differs(*table, row)) name_file(into.rows.back());
    }
  }
  std::vector<ReplaySection> out;
  for (const auto& [key, traces] : sections.items()) {
    out.push_back({.run = key[0], .protocol = key[1], .device = key[2], .parts = {}});
    for (const auto& [trace, gathered] : traces.items()) finish(gathered, out.back().parts);
  }
  return out;
}

std::string name_of(const ReplayPart& part) {
  if (part.prompt.empty()) return part.trace;
  return part.trace + (part.prompt == "all" ? ", all prompts" : ", prompt " + part.prompt);
}

}  // namespace kvbench::report
