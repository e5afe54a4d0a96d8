// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/document_results.hpp>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/read/checked_rows.hpp>
#include <kvbench/report/read/table_kind.hpp>

namespace kvbench::report {
namespace {

constexpr std::size_t longest_header = 1 << 16;

compare::EvalSetting setting_of(const eval::EvalRecord& r) {
  return {.text = r.text,
          .task = r.task,
          .question = r.question,
          .context_tokens = std::to_string(r.context_tokens),
          .inject = fmt::format("{}{}", name_of(r.injection.mode),
                                r.injection.scale == 1 ? "" : fmt::format(" times {}", r.injection.scale)),
          .inject_layer = r.injection.layer < 0 ? "" : std::to_string(r.injection.layer),
          .method_layers = r.settings.layers,
          .model_layers = std::to_string(r.settings.model_layers),
          .weights = r.settings.weights,
          .kv_dtype = r.settings.kv_dtype,
          .protect = r.settings.protect,
          .decoded = r.settings.decoded};
}

}  // namespace

DocumentResults::DocumentResults(std::string path, eval::Damage figure) : TableResults(std::move(path)) {
  const std::string_view column = figure_of(figure).info.name;
  std::optional<RowReader<eval::EvalRecord>> read;
  bool documents = false;
  scan_csv(path_, [&](const CsvTable& table, const CsvRow& line) {
    if (!read && (kind_of(table) != TableKind::evaluations || !table.has(column)))
      throw Error("{}: lacks the column '{}', which kveval writes", path_, column);
    if (!read) read.emplace(table, eval_columns());
    const eval::EvalRecord row = (*read)(line);
    if (row.document == "all" || row.layer) return;
    documents = true;
    if (row.injection.mode != eval::Inject::none) add(table, line, row, figure);
  });
  if (!documents) throw Error("{}: has no rows per document; run kveval with --per-document.", path_);
  if (values_.empty()) {
    throw Error(
        "{}: all rows per document are of --inject none, which leaves the output as it is; there is nothing to "
        "compare.",
        path_);
  }
}

void DocumentResults::add(const CsvTable& table, const CsvRow& line, const eval::EvalRecord& row, eval::Damage figure) {
  const auto [at, added] = place_of(key_of(table, line, eval_columns(), Tells::place));
  compare::QueryPlace& place = places_[at];
  if (added) {
    place.model = row.model, place.sha256 = row.sha256, place.prompt = row.document;
    place.document_sha256 = row.document_sha256;
    if (place.document_sha256.empty())
      throw Error("{}:{}: column 'document_sha256' is empty, which identifies document '{}'", path_, line.line,
                  place.prompt);
    place.context_tokens = row.context_tokens;
    place.positions = {0};
    place.eval = setting_of(row);
  }
  const std::size_t configuration = configuration_of(row, false, 0);
  compare::QueryValues& values = values_[{at, configuration}];
  if (!values.values.empty()) {
    throw Error("{}:{}: the row of {} at {} of document '{}' appears twice", path_, line.line,
                compare::label_of(configurations_[configuration]), row.budget, place.prompt);
  }
  add_value(row, row, row.of(figure).mean, values);
  values.compressed_layers = row.compressed_layers;
  if (!row.ok()) return;
  require_numbers(table, line);
  if (figure_of(figure).everywhere()) require_number(table, line, figure_of(figure).info.name);
}

bool is_eval_table(const std::string& path) {
  const std::string begin = begin_of_file(path, longest_header);
  return std::string_view(begin).substr(0, begin.find('\n')).find("kl_mean") != std::string_view::npos;
}

}  // namespace kvbench::report
