// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/query_csv.hpp>

#include <kvbench/compare/raw_reader.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/trace/guard/untrusted_file.hpp>

namespace kvbench::report {
namespace {

/// The columns that identify a place.
constexpr const char* place_columns[] = {"run",    "trace",    "sha256", "model", "prompt",
                                         "device", "protocol", "layer",  "head"};

}  // namespace

QueryCsv::QueryCsv(std::string path, std::string_view metric)
    : TableResults(std::move(path)), column_(fmt::format("{}_mean", metric)) {
  bool checked = false;
  scan_csv(path_, [&](const CsvTable& table, const CsvRow& row) {
    for (const char* needed : {"method", "status", "query", column_.c_str()}) {
      if (!checked && !table.has(needed)) {
        throw Error("{}: has no column '{}', so it is not a table of kvbench replay; see docs/results.md.", path_,
                    needed);
      }
    }
    checked = true;
    const bool hindsight = table.has("refit") && !table.text(row, "refit").empty();
    if (table.text(row, "query") != "all" && !hindsight) add(table, row);
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

void QueryCsv::add(const CsvTable& table, const CsvRow& row) {
  const auto [at, added] = place_of(table, row, place_columns);
  compare::QueryPlace& place = places_[at];
  if (added) {
    place.run = table.text(row, "run"), place.trace = table.text(row, "trace"),
    place.sha256 = table.text(row, "sha256");
    place.model = table.text(row, "model"), place.prompt = table.text(row, "prompt");
    place.protocol = table.text(row, "protocol");
    place.layer = whole_number(table, row, "layer");
    if (table.has("model_layers")) place.model_layers = whole_number(table, row, "model_layers");
    place.kv_head = whole_number(table, row, "kv_head");
    place.query_head = whole_number(table, row, "head");
  }
  if (place.context_tokens == 0 && table.has("context_tokens") && !table.text(row, "context_tokens").empty()) {
    place.context_tokens = whole_number(table, row, "context_tokens");
  }
  compare::QueryValues& values = values_[{at, configuration_of(table, row)}];
  const std::int32_t query = whole_number(table, row, "query");
  const std::size_t next = values.values.size();
  if (next == place.positions.size()) place.positions.push_back(query);
  if (place.positions[next] != query) {
    throw Error(
        "{}:{}: query {} where {} was expected; the rows of a head must stay in the order in which kvbench wrote them",
        path_, row.line, query, place.positions[next]);
  }
  add_value(table, row, static_cast<float>(table.number(row, column_)), values);  // as in raw results
}

std::unique_ptr<compare::QueryResults> open_query_results(const std::string& path, std::string_view metric) {
  if (file_begins_with(path, trace::hdf5_signature)) return std::make_unique<compare::RawReader>(path, metric);
  return std::make_unique<QueryCsv>(path, metric);
}

}  // namespace kvbench::report
