// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/sections.hpp>

#include <algorithm>
#include <functional>
#include <locale>
#include <map>
#include <sstream>
#include <tuple>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/report/columns/evaluations.hpp>
#include <kvbench/report/read/eval_rows.hpp>
#include <kvbench/report/read/rows.hpp>
#include <kvbench/report/text/budget_words.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

/// The number of layers of ranges such as "0-2,5". Text that is none counts as no layer.
Index layer_count(const std::string& ranges) {
  Index count = 0;
  std::istringstream parts(ranges);
  for (std::string part; std::getline(parts, part, ',');) {
    long first = 0, last = 0;
    char dash = 0;
    std::istringstream range(part);
    range.imbue(std::locale::classic());
    if (!(range >> first)) continue;
    count += range >> dash >> last && last >= first && last < 1'000'000 ? last - first + 1 : 1;
  }
  return count;
}

using EvalKey = std::vector<std::string>;

EvalKey eval_key(const CsvTable& table, const CsvRow& row, std::span<const char* const> columns) {
  EvalKey key;
  for (const char* column : columns) key.push_back(table.text(row, column));
  return key;
}

constexpr const char* eval_section_columns[] = {"model",    "sha256",   "text",          "context_tokens",
                                                "question", "device",   "method_layers", "model_layers",
                                                "weights",  "kv_dtype", "protect",       "decoded"};
constexpr const char* eval_row_columns[] = {"task",   "document",     "document_sha256", "documents_sha256",
                                            "inject", "inject_layer", "layer",           "method",
                                            "params", "budget"};

EvalKey row_key(const CsvTable& table, const CsvRow& row) {
  EvalKey key = eval_key(table, row, eval_section_columns);
  for (std::string& text : eval_key(table, row, eval_row_columns)) key.push_back(std::move(text));
  return key;
}

/// The sections by key: rows about other documents of a task that a section has belong to a section of their own.
class SectionKeys {
 public:
  EvalKey operator()(const CsvTable& table, const CsvRow& row) {
    EvalKey key = eval_key(table, row, eval_section_columns), of_task = key;
    of_task.push_back(table.text(row, "task"));
    std::vector<std::string>& digests = digests_[of_task];
    const std::string& digest = table.text(row, "documents_sha256");
    const auto known = std::ranges::find(digests, digest);
    key.push_back(std::to_string(known - digests.begin()));
    if (known == digests.end()) digests.push_back(digest);
    return key;
  }

 private:
  std::map<EvalKey, std::vector<std::string>> digests_;
};

/// Whether a row over all layers is about fewer of them than the method was to run in.
bool has_fewer_layers(const EvalRow& row) {
  if (row.layer || row.injection.mode == eval::Inject::one || row.injection.mode == eval::Inject::upto) return false;
  return row.compressed_layers < layer_count(row.settings.layers);
}

/// Sorts a row into its section.
void add_row(EvalRow row, EvalSection& section) {
  section.settings = row.settings;
  const bool over_documents = row.document == "all";
  if (row.status != replay::Status::ok) {
    if (over_documents) section.broken.push_back(std::move(row));
  } else if (!has_fewer_layers(row)) {
    section.rows.push_back(std::move(row));
  } else if (over_documents) {
    section.fewer_layers.push_back(std::move(row));
  }
}

/// Whether a file before this one has the row. Throws Error where the same file has it.
bool is_repeated(std::map<EvalKey, const CsvTable*>& seen, const CsvTable& table, const CsvRow& row) {
  const auto [known, fresh] = seen.emplace(row_key(table, row), &table);
  if (fresh) return false;
  if (known->second == &table) {
    throw Error("{}:{}: the row of {} {} at {} appears twice", table.file, row.line, table.text(row, "method"),
                table.text(row, "params"), table.text(row, "budget"));
  }
  return true;
}

void list_names(EvalSection& section) {
  DistinctTexts tasks, methods;
  Distinct<Budget> budgets;
  for (const EvalRow& row : section.rows) tasks.add(row.task), budgets.add(row.budget), methods.add(row.name());
  section.tasks = tasks.list(), section.budgets = budgets.list(), section.methods = methods.list();
  DistinctTexts documents;
  for (const EvalRow& row : section.rows) documents.add(fmt::format("{} {}", row.task, row.documents_sha256));
  section.documents = fmt::format("{}", fmt::join(documents.list(), ", "));
}

/// Names what differs among sections whose headings are equal.
void distinguish(std::vector<EvalSection>& sections) {
  const std::pair<const char*, std::function<std::string(const EvalSection&)>> parts[] = {
      {"question ", [](const EvalSection& s) { return s.question; }},
      {"device ", [](const EvalSection& s) { return s.device; }},
      {"weights ", [](const EvalSection& s) { return s.settings.weights; }},
      {"cache ", [](const EvalSection& s) { return s.settings.kv_dtype; }},
      {"protected tokens ", [](const EvalSection& s) { return s.settings.protect; }},
      {"decoded tokens: ", [](const EvalSection& s) { return s.settings.decoded; }},
      {"documents: ", [](const EvalSection& s) { return s.documents; }}};
  const auto of_text = [](const EvalSection& s) { return std::tie(s.model, s.text, s.context); };
  for (EvalSection& section : sections) {
    const auto tells_apart = [&](const auto& text) {
      return std::ranges::any_of(sections, [&](const EvalSection& other) {
        return of_text(other) == of_text(section) && text(other) != text(section);
      });
    };
    const auto layers = [](const EvalSection& s) { return layers_text(s.settings); };
    if (tells_apart(layers) || layer_count(section.settings.layers) != section.settings.model_layers)
      section.distinction = ", " + layers(section);
    for (const auto& [what, text] : parts) {
      if (tells_apart(text)) section.distinction += fmt::format(", {}{}", what, text(section));
    }
  }
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
  if (const auto known = own.find(row.name()); known != own.end()) return known->second;
  return static_cast<int>(std::ranges::find(methods, row.name()) - methods.begin());
}

std::vector<EvalSection> eval_sections(std::span<const CsvTable* const> tables) {
  OrderedMap<EvalKey, EvalSection> sections;
  std::map<EvalKey, const CsvTable*> seen;
  SectionKeys keys;
  for (const CsvTable* table : tables) {
    const RowReader<eval::EvalRecord> read(*table, eval_columns());
    for (const CsvRow& row : table->rows) {
      if (is_repeated(seen, *table, row)) continue;
      const EvalKey key = keys(*table, row);
      EvalSection& section = sections[key];
      section.model = key[0], section.text = key[2], section.context = key[3], section.question = key[4],
      section.device = key[5];
      if (table->text(row, "status") == "ok" && table->text(row, "layer") == "all") require_numbers(*table, row);
      add_row({read(row)}, section);
    }
  }
  std::vector<EvalSection> out;
  for (auto& [key, section] : sections.items()) {
    list_names(section);
    out.push_back(std::move(section));
  }
  distinguish(out);
  return out;
}

std::string layers_text(const eval::EvalSettings& settings) {
  const Index count = layer_count(settings.layers);
  if (count == settings.model_layers) return fmt::format("all {} layers", count);
  return fmt::format("layer{} {} of {}", count == 1 ? "" : "s", settings.layers, settings.model_layers);
}

Budget quarter_of(const EvalSection& section) {
  const auto nearest = std::ranges::min_element(section.budgets, {}, distance_from_quarter);
  return nearest == section.budgets.end() ? Budget() : *nearest;
}

}  // namespace kvbench::report
