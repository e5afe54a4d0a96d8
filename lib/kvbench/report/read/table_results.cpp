// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/table_results.hpp>

#include <limits>

#include <kvbench/compare/configuration_name.hpp>
#include <kvbench/compare/raw_reader.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/read/table_kind.hpp>
#include <kvbench/trace/guard/untrusted_file.hpp>

namespace kvbench::report {

std::optional<compare::QueryValues> TableResults::read(std::size_t place, std::size_t configuration) const {
  const auto found = values_.find({place, configuration});
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::pair<std::size_t, bool> TableResults::place_of(RowKey key) {
  const auto [at, added] = known_places_.emplace(std::move(key), places_.size());
  if (added) places_.emplace_back();
  return {at->second, added};
}

std::size_t TableResults::configuration_of(const replay::RowIdentity& row, bool seeded, std::uint32_t seed) {
  const auto [at, added] = known_configurations_.emplace(
      Configuration(row.method, row.params, row.budget, seeded, seed), configurations_.size());
  if (added) configurations_.push_back({row.method, row.params, row.budget, seed, seeded});
  return at->second;
}

void TableResults::add_value(const replay::RowIdentity& row, const replay::Costs& costs, double value,
                             compare::QueryValues& values) {
  values.values.push_back(value);
  values.bytes_held = costs.bytes.of(CostKind::memory), values.bytes_read = costs.bytes.read;
  values.status = row.status;
  if (!row.ok()) values.reason = row.reason;
}

constexpr std::int32_t most_tokens = std::numeric_limits<std::int32_t>::max();

QueryCsv::QueryCsv(std::string path, std::string_view metric)
    : TableResults(std::move(path)), metric_(replay::find_metric(metric).value()) {
  std::optional<RowReader<replay::Record>> read;
  scan_csv(path_, [&](const CsvTable& table, const CsvRow& line) {
    if (!read) check_header(table);
    if (!read) read.emplace(table, record_columns());
    const replay::Record row = (*read)(line);
    if (row.query) add(table, line, row);
  });
  if (values_.empty()) {
    throw Error("{}: has no rows per query; write it with --rows query, or store the results of the replay with --raw.",
                path_);
  }
  for (const auto& [key, values] : values_) {
    const compare::QueryPlace& place = places_[key.first];
    if (values.values.size() == place.positions.size()) continue;
    throw Error(
        "{}: '{}' has {} queries of prompt '{}', layer {}, head {}, but other configurations have {}; is the file "
        "incomplete?",
        path_, configurations_[key.second].method, values.values.size(), place.prompt, place.layer, place.query_head,
        place.positions.size());
  }
}

void QueryCsv::check_header(const CsvTable& table) const {
  const std::string mean = fmt::format("{}_mean", name_of(metric_));
  for (const std::string& needed : {std::string("method"), std::string("status"), std::string("query"), mean}) {
    if (!table.has(needed) && !(needed == mean && is_of_layer(metric_)))
      throw Error("{}: has no column '{}', so it is not a table of kvbench replay; see docs/results.md.", path_,
                  needed);
  }
  if (is_of_layer(metric_))
    throw Error(
        "{}: rows of single queries have no figure of all heads of a layer, such as {} or kl_predicted; store the "
        "results of the replay with --raw, and compare these.",
        path_, name_of(metric_));
}

void QueryCsv::add(const CsvTable& table, const CsvRow& line, const replay::Record& row) {
  const auto [at, added] = place_of(key_of(table, line, record_columns(), Tells::place));
  compare::QueryPlace& place = places_[at];
  if (added) {
    place.run = row.run, place.trace = row.trace, place.sha256 = row.sha256, place.model = row.model;
    place.prompt = row.prompt, place.protocol = std::string(name_of(row.protocol));
    place.layer = row.layer.value_or(0), place.model_layers = row.model_layers;
    place.kv_head = row.kv_head.value_or(0), place.query_head = row.query_head.value_or(0);
  }
  if (place.context_tokens == 0 && row.context_tokens >= 1 && row.context_tokens <= most_tokens)
    place.context_tokens = static_cast<Index>(row.context_tokens);
  compare::QueryValues& values = values_[{at, configuration_of(row, row.seeded, row.seed.value_or(0))}];
  if (*row.query > most_tokens) throw Error("{}:{}: {} is not the position of a query", path_, line.line, *row.query);
  const auto query = static_cast<std::int32_t>(*row.query);
  const std::size_t next = values.values.size();
  if (next == place.positions.size()) place.positions.push_back(query);
  if (place.positions[next] != query) {
    throw Error(
        "{}:{}: query {} where {} was expected; the rows of a head must stay in the order in which kvbench wrote them",
        path_, line.line, query, place.positions[next]);
  }
  add_value(row, row, static_cast<float>(row.of(metric_).mean), values);  // as in raw results
  values.dense |= row.dense;
}

std::unique_ptr<compare::QueryResults> open_query_results(const std::string& path, std::string_view metric) {
  if (file_begins_with(path, trace::hdf5_signature)) return std::make_unique<compare::RawReader>(path, metric);
  return std::make_unique<QueryCsv>(path, metric);
}

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
          .decoded = r.settings.decoded,
          .generate = r.settings.generate};
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
    if (row.over_documents() || row.layer || row.turn > 0) return;
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
    if (row.settings.protocol != eval::EvalProtocol()) place.protocol = row.settings.protocol.text();
    place.eval = setting_of(row);
  }
  const std::size_t configuration = configuration_of(row, false, 0);
  compare::QueryValues& values = values_[{at, configuration}];
  if (!values.values.empty()) {
    throw Error("{}:{}: the row of {} at {} of document '{}' appears twice", path_, line.line,
                compare::label_of(configurations_[configuration]), row.budget, place.prompt);
  }
  add_value(row, row, row.of(figure).mean, values);
  values.compressed_layers = row.common_layers();
  if (!row.ok()) return;
  require_numbers(table, line);
  if (figure_of(figure).everywhere()) require_number(table, line, figure_of(figure).info.name);
}

bool is_eval_table(const std::string& path) {
  const std::string begin = begin_of_file(path, longest_header);
  return std::string_view(begin).substr(0, begin.find('\n')).find("kl_mean") != std::string_view::npos;
}

}  // namespace kvbench::report
