// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/document_results.hpp>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/report/read/eval_rows.hpp>
#include <kvbench/report/read/table_kind.hpp>

namespace kvbench::report {
namespace {

constexpr const char* document_columns[] = {
    "model",         "sha256",       "text",    "context_tokens", "question", "task",    "document", "document_sha256",
    "method_layers", "model_layers", "weights", "kv_dtype",       "protect",  "decoded", "inject",   "inject_layer"};
constexpr std::size_t longest_header = 1 << 16;

compare::EvalSetting setting_of(const CsvTable& table, const CsvRow& row) {
  const auto text = [&](const char* column) { return table.text(row, column); };
  return {.text = text("text"),
          .task = text("task"),
          .question = text("question"),
          .context_tokens = text("context_tokens"),
          .inject = text("inject"),
          .inject_layer = text("inject_layer"),
          .method_layers = text("method_layers"),
          .model_layers = text("model_layers"),
          .weights = text("weights"),
          .kv_dtype = text("kv_dtype"),
          .protect = text("protect"),
          .decoded = text("decoded")};
}

}  // namespace

DocumentResults::DocumentResults(std::string path, eval::Damage figure) : TableResults(std::move(path)) {
  const std::string_view column = figure_of(figure).info.name;
  bool checked = false, documents = false;
  scan_csv(path_, [&](const CsvTable& table, const CsvRow& row) {
    if (!checked && (kind_of(table) != TableKind::evaluations || !table.has(column)))
      throw Error("{}: lacks the column '{}', which kveval writes", path_, column);
    checked = true;
    if (table.text(row, "document") == "all" || table.text(row, "layer") != "all") return;
    documents = true;
    if (table.text(row, "inject") != "none") add(table, row, figure);
  });
  if (!documents) throw Error("{}: has no rows per document; run kveval with --per-document.", path_);
  if (values_.empty()) {
    throw Error(
        "{}: all rows per document are of --inject none, which leaves the output as it is; there is nothing to "
        "compare.",
        path_);
  }
}

void DocumentResults::add(const CsvTable& table, const CsvRow& row, eval::Damage figure) {
  const auto [at, added] = place_of(table, row, document_columns);
  compare::QueryPlace& place = places_[at];
  if (added) {
    place.model = table.text(row, "model"), place.sha256 = table.text(row, "sha256");
    place.prompt = table.text(row, "document");
    place.document_sha256 = table.text(row, "document_sha256");
    if (place.document_sha256.empty())
      throw Error("{}:{}: column 'document_sha256' is empty, which identifies document '{}'", path_, row.line,
                  place.prompt);
    place.context_tokens = table.count(row, "context_tokens");
    place.positions = {0};
    place.eval = setting_of(table, row);
  }
  const std::size_t configuration = configuration_of(table, row);
  compare::QueryValues& values = values_[{at, configuration}];
  if (!values.values.empty()) {
    throw Error("{}:{}: the row of {} at {} of document '{}' appears twice", path_, row.line,
                compare::label_of(configurations_[configuration]), configurations_[configuration].budget, place.prompt);
  }
  add_value(table, row, table.number(row, figure_of(figure).info.name), values);
  values.compressed_layers = table.count(row, "compressed_layers");
  if (values.status != replay::Status::ok) return;
  require_numbers(table, row);
  if (figure_of(figure).everywhere()) require_number(table, row, figure_of(figure).info.name);
}

bool is_eval_table(const std::string& path) {
  const std::string begin = begin_of_file(path, longest_header);
  return std::string_view(begin).substr(0, begin.find('\n')).find("kl_mean") != std::string_view::npos;
}

}  // namespace kvbench::report
