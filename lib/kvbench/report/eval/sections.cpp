// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/eval/sections.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include <fmt/ranges.h>

#include <kvbench/core/error.hpp>
#include <kvbench/core/ordered_map.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/read/rows.hpp>
#include <kvbench/report/read/table_kind.hpp>
#include <kvbench/report/text/sentences.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

/// The sections by key: rows about other documents of a task that a section has belong to a section of their own.
class SectionKeys {
 public:
  RowKey operator()(const CsvTable& table, const CsvRow& line, const EvalRow& row) {
    RowKey key = key_of(table, line, eval_columns(), Tells::section), of_task = key;
    of_task.push_back(row.task);
    std::vector<std::string>& digests = digests_[of_task];
    const auto known = std::ranges::find(digests, row.documents_sha256);
    key.push_back(std::to_string(known - digests.begin()));
    if (known == digests.end()) digests.push_back(row.documents_sha256);
    return key;
  }

 private:
  std::map<RowKey, std::vector<std::string>> digests_;
};

/// Whether a row over all layers is about fewer of them than the method was to run in.
bool has_fewer_layers(const EvalRow& row) {
  if (row.layer || row.injection.mode == eval::Inject::one || row.injection.mode == eval::Inject::upto) return false;
  return row.compressed_layers < eval::layer_count(row.settings.layers);
}

/// Sorts a row into its section.
void add_row(EvalRow row, EvalSection& section) {
  section.model = row.model, section.text = row.text, section.question = row.question, section.device = row.device;
  section.inject_scale = row.injection.scale;
  section.context = std::to_string(row.context_tokens), section.settings = row.settings;
  const bool over_documents = row.over_documents();
  if (row.turn > 0) {
    if (row.ok()) section.turns.push_back(std::move(row));
  } else if (!row.ok()) {
    if (over_documents) section.broken.push_back(std::move(row));
  } else if (!has_fewer_layers(row)) {
    section.rows.push_back(std::move(row));
  } else if (over_documents) {
    section.fewer_layers.push_back(std::move(row));
  }
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
      {"protocol ", [](const EvalSection& s) { return s.settings.protocol.text(); }},
      {"generated tokens: ", [](const EvalSection& s) { return s.settings.generate; }},
      {"documents: ", [](const EvalSection& s) { return s.documents; }}};
  const auto of_text = [](const EvalSection& s) { return std::tie(s.model, s.text, s.context); };
  for (EvalSection& section : sections) {
    const auto tells_apart = [&](const auto& text) {
      return std::ranges::any_of(sections, [&](const EvalSection& other) {
        return of_text(other) == of_text(section) && text(other) != text(section);
      });
    };
    const auto layers = [](const EvalSection& s) { return layers_text(s.settings); };
    if (tells_apart(layers) || eval::layer_count(section.settings.layers) != section.settings.model_layers)
      section.distinction = ", " + layers(section);
    if (section.inject_scale != 1) section.distinction += fmt::format(", errors times {}", section.inject_scale);
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
    const bool of_document = document.empty() ? !row.over_documents() : row.document == document;
    if (row.task == task && of_document && name_of(row.injection.mode) == inject && !row.layer) out.push_back(&row);
  }
  return out;
}

int EvalSection::style_of(const EvalRow& row) const {
  if (const auto known = own.find(row.name()); known != own.end()) return known->second;
  return static_cast<int>(std::ranges::find(methods, row.name()) - methods.begin());
}

std::vector<EvalSection> eval_sections(std::span<const CsvTable* const> tables) {
  OrderedMap<RowKey, EvalSection> sections;
  FirstRows<EvalRow> first(eval_columns());
  SectionKeys keys;
  for (const CsvTable* table : tables) {
    const RowReader<EvalRow> read(*table, eval_columns());
    for (const CsvRow& line : table->rows) {
      if (first.add(*table, line).second != &line) continue;
      EvalRow row = read(line);
      if (row.ok() && !row.layer) require_numbers(*table, line);
      EvalSection& section = sections[keys(*table, line, row)];
      add_row(std::move(row), section);
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
  const Index count = eval::layer_count(settings.layers);
  if (count == settings.model_layers) return fmt::format("all {} layers", count);
  return fmt::format("layer{} {} of {}", count == 1 ? "" : "s", settings.layers, settings.model_layers);
}

Budget quarter_of(const EvalSection& section) {
  const auto nearest = std::ranges::min_element(section.budgets, {}, distance_from_quarter);
  return nearest == section.budgets.end() ? Budget() : *nearest;
}

}  // namespace kvbench::report
