// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/query_csv.hpp>

#include <limits>

#include <kvbench/compare/raw_reader.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/report/columns/tables.hpp>
#include <kvbench/trace/guard/untrusted_file.hpp>

namespace kvbench::report {

constexpr std::int32_t most_tokens = std::numeric_limits<std::int32_t>::max();

QueryCsv::QueryCsv(std::string path, std::string_view metric)
    : TableResults(std::move(path)), metric_(replay::find_metric(metric).value()) {
  if (is_of_layer(metric_))
    throw Error(
        "{}: rows of single queries have no {}, a figure of all heads of a layer; store the results of the replay with "
        "--raw, and compare these.",
        path_, metric);
  std::optional<RowReader<replay::Record>> read;
  scan_csv(path_, [&](const CsvTable& table, const CsvRow& line) {
    if (!read) check_header(table);
    if (!read) read.emplace(table, record_columns());
    const replay::Record row = (*read)(line);
    if (row.query && row.refit == replay::Refit::none) add(table, line, row);
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
  for (const std::string& needed :
       {std::string("method"), std::string("status"), std::string("query"), fmt::format("{}_mean", name_of(metric_))}) {
    if (!table.has(needed))
      throw Error("{}: has no column '{}', so it is not a table of kvbench replay; see docs/results.md.", path_,
                  needed);
  }
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

}  // namespace kvbench::report
