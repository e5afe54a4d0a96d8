// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/query_csv.hpp>

#include <cmath>

#include <kvbench/compare/raw_reader.hpp>
#include <kvbench/core/error.hpp>
#include <kvbench/core/input_file.hpp>
#include <kvbench/trace/untrusted_file.hpp>

namespace kvbench {
namespace {

/// The columns that identify a place and a configuration.
constexpr const char* place_columns[] = {"run", "trace", "sha256", "model", "prompt", "device", "protocol", "layer", "head"};
constexpr const char* configuration_columns[] = {"method", "params", "budget", "seed"};

template <std::size_t N>
std::vector<std::string> texts(const CsvTable& table, const CsvRow& row, const char* const (&columns)[N]) {
  std::vector<std::string> out;
  for (const char* column : columns) out.push_back(table.text(row, column));
  return out;
}

Status status_of(const CsvTable& table, const CsvRow& row) {
  const std::string& text = table.text(row, "status");
  if (const auto status = find_status(text)) return *status;
  throw Error("{}:{}: '{}' is not a status of kvbench", table.file, row.line, text);
}

template <class T>
T integer(const CsvTable& table, const CsvRow& row, const char* column) {
  const double value = table.number(row, column);
  if (!(std::abs(value) <= 2147483647.0) || value != std::floor(value)) {
    throw Error("{}:{}: column '{}' holds '{}', which is not the number of a layer, head, query or seed", table.file, row.line,
                column, table.text(row, column));
  }
  return static_cast<T>(value);
}

}  // namespace

QueryCsv::QueryCsv(std::string path, std::string_view metric)
    : path_(std::move(path)), column_(fmt::format("{}_mean", metric)) {
  bool checked = false;
  scan_csv(path_, [&](const CsvTable& table, const CsvRow& row) {
    for (const char* needed : {"method", "status", "query", column_.c_str()}) {
      if (!checked && !table.has(needed)) {
        throw Error("{}: has no column '{}', so it is not a table of kvbench replay; see docs/results.md.", path_, needed);
      }
    }
    checked = true;
    if (table.text(row, "query") != "all") add(table, row);
  });
  if (values_.empty()) {
    throw Error("{}: has no rows per query; write it with --rows query, or store the results of the replay with --raw.", path_);
  }
  for (const auto& [key, values] : values_) {
    const QueryPlace& place = places_[key.first];
    if (values.values.size() == place.positions.size()) continue;
    throw Error(
        "{}: '{}' has {} queries of prompt '{}', layer {}, head {}, but other configurations have {}; is the file incomplete?",
        path_, configurations_[key.second].method, values.values.size(), place.prompt, place.layer, place.query_head,
        place.positions.size());
  }
}

std::size_t QueryCsv::place_of(const CsvTable& table, const CsvRow& row) {
  const auto [at, added] = known_places_.emplace(texts(table, row, place_columns), places_.size());
  if (added) {
    QueryPlace place;
    place.run = table.text(row, "run"), place.trace = table.text(row, "trace"), place.sha256 = table.text(row, "sha256");
    place.model = table.text(row, "model"), place.prompt = table.text(row, "prompt");
    place.protocol = table.text(row, "protocol");
    place.layer = integer<std::int64_t>(table, row, "layer");
    place.kv_head = integer<Index>(table, row, "kv_head");
    place.query_head = integer<Index>(table, row, "head");
    places_.push_back(std::move(place));
  }
  return at->second;
}

std::size_t QueryCsv::configuration_of(const CsvTable& table, const CsvRow& row) {
  const auto [at, added] = known_configurations_.emplace(texts(table, row, configuration_columns), configurations_.size());
  if (added) {
    const bool seeded = !table.text(row, "seed").empty();
    configurations_.push_back({table.text(row, "method"), table.text(row, "params"), table.text(row, "budget"),
                               seeded ? integer<std::uint32_t>(table, row, "seed") : 0, seeded});
  }
  return at->second;
}

void QueryCsv::add(const CsvTable& table, const CsvRow& row) {
  const std::size_t at = place_of(table, row);
  QueryPlace& place = places_[at];
  QueryValues& values = values_[{at, configuration_of(table, row)}];
  if (place.context_tokens == 0 && table.has("context_tokens") && !table.text(row, "context_tokens").empty()) {
    place.context_tokens = integer<Index>(table, row, "context_tokens");
  }
  const auto query = integer<std::int32_t>(table, row, "query");
  const std::size_t next = values.values.size();
  if (next == place.positions.size()) place.positions.push_back(query);
  if (place.positions[next] != query) {
    throw Error("{}:{}: query {} where {} was expected; the rows of a head must stay in the order in which kvbench wrote them",
                path_, row.line, query, place.positions[next]);
  }
  values.values.push_back(static_cast<float>(table.number(row, column_)));
  values.dense |= table.text(row, "dense") == "1";
  if (table.has("total_bytes") && table.has("bytes_read")) {
    values.bytes_held = table.number(row, "total_bytes");
    values.bytes_read = table.number(row, "bytes_read");
  }
  values.status = status_of(table, row);
  if (values.status != Status::ok) values.reason = table.text(row, "reason");
}

std::optional<QueryValues> QueryCsv::read(std::size_t place, std::size_t configuration) const {
  const auto found = values_.find({place, configuration});
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::unique_ptr<QueryResults> open_query_results(const std::string& path, std::string_view metric) {
  if (file_begins_with(path, trace::hdf5_signature)) return std::make_unique<RawReader>(path, metric);
  return std::make_unique<QueryCsv>(path, metric);
}

}  // namespace kvbench
