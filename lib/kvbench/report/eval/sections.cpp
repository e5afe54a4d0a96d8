// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/sections.hpp>

#include <algorithm>
#include <map>

#include <kvbench/core/budget.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/report/columns/evaluations.hpp>
#include <kvbench/report/read/rows.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

using EvalKey = std::vector<std::string>;

EvalKey eval_key(const CsvTable& table, const CsvRow& row, std::span<const char* const> columns) {
  EvalKey key;
  for (const char* column : columns) key.push_back(table.text(row, column));
  return key;
}

constexpr const char* eval_section_columns[] = {"model", "sha256", "text", "context_tokens", "question", "device"};
constexpr const char* eval_row_columns[] = {"model",  "sha256", "text",     "context_tokens", "question",
                                            "device", "task",   "document", "inject",         "inject_layer",
                                            "layer",  "method", "params",   "budget"};

/// Whether a file before this one has the row. Throws Error where the same file has it.
bool is_repeated(std::map<EvalKey, const CsvTable*>& seen, const CsvTable& table, const CsvRow& row) {
  const auto [known, fresh] = seen.emplace(eval_key(table, row, eval_row_columns), &table);
  if (fresh) return false;
  if (known->second == &table) {
    throw Error("{}:{}: the row of {} {} at {} appears twice", table.file, row.line, table.text(row, "method"),
                table.text(row, "params"), table.text(row, "budget"));
  }
  return true;
}

void list_names(EvalSection& section) {
  DistinctTexts tasks, budgets, methods;
  for (const EvalRow& row : section.rows) tasks.add(row.task), budgets.add(row.budget), methods.add(row.name());
  section.tasks = tasks.list(), section.budgets = budgets.list(), section.methods = methods.list();
}

}  // namespace

std::vector<const EvalRow*> EvalSection::find(const std::string& task, const std::string& document,
                                              const std::string& inject) const {
  std::vector<const EvalRow*> out;
  for (const EvalRow& row : rows) {
    const bool of_document = document.empty() ? row.document != "all" : row.document == document;
    if (row.task == task && of_document && name_of(row.injection.mode) == inject && !row.layer) out.push_back(&row);
  }
  return out;
}

int EvalSection::style_of(const EvalRow& row) const {
  return static_cast<int>(std::ranges::find(methods, row.name()) - methods.begin());
}

std::vector<EvalSection> eval_sections(std::span<const CsvTable* const> tables) {
  OrderedMap<EvalKey, EvalSection> sections;
  std::map<EvalKey, const CsvTable*> seen;
  for (const CsvTable* table : tables) {
    const RowReader<eval::EvalRecord> read(*table, eval_columns());
    for (const CsvRow& row : table->rows) {
      if (is_repeated(seen, *table, row)) continue;
      const EvalKey key = eval_key(*table, row, eval_section_columns);
      EvalSection& section = sections[key];
      section.model = key[0], section.text = key[2], section.context = key[3], section.question = key[4],
      section.device = key[5];
      if (table->text(row, "status") == "ok")
        section.rows.push_back({read(row)});
      else if (table->text(row, "document") == "all")
        section.broken.push_back({read(row)});
    }
  }
  std::vector<EvalSection> out;
  for (auto& [key, section] : sections.items()) {
    list_names(section);
    out.push_back(std::move(section));
  }
  return out;
}

std::string quarter_of(const EvalSection& section) {
  std::string best;
  double least = INFINITY;
  for (const std::string& text : section.budgets) {
    double distance = 1e9;  // of budgets that are not shares
    try {
      const Budget budget = Budget::parse(text);
      if (budget.is_share()) distance = std::abs(std::log(budget.share() / 0.25));
    } catch (const Error&) {
      continue;  // a budget of a later version
    }
    if (distance < least) least = distance, best = text;
  }
  return best;
}

}  // namespace kvbench::report
