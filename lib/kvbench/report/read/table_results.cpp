// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/read/table_results.hpp>

#include <cmath>

#include <kvbench/core/error.hpp>

namespace kvbench::report {
namespace {

constexpr const char* configuration_columns[] = {"method", "params", "budget", "seed"};

std::vector<std::string> texts(const CsvTable& table, const CsvRow& row, std::span<const char* const> columns) {
  std::vector<std::string> out;
  for (const char* column : columns) out.push_back(table.text(row, column));
  return out;
}

replay::Status status_of(const CsvTable& table, const CsvRow& row) {
  const std::string& text = table.text(row, "status");
  if (const auto status = compare::find_status(text)) return *status;
  throw Error("{}:{}: '{}' is not a status of kvbench", table.file, row.line, text);
}

}  // namespace

std::optional<compare::QueryValues> TableResults::read(std::size_t place, std::size_t configuration) const {
  const auto found = values_.find({place, configuration});
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::pair<std::size_t, bool> TableResults::place_of(const CsvTable& table, const CsvRow& row,
                                                    std::span<const char* const> columns) {
  const auto [at, added] = known_places_.emplace(texts(table, row, columns), places_.size());
  if (added) places_.emplace_back();
  return {at->second, added};
}

std::size_t TableResults::configuration_of(const CsvTable& table, const CsvRow& row) {
  const auto [at, added] =
      known_configurations_.emplace(texts(table, row, configuration_columns), configurations_.size());
  if (added) {
    const bool seeded = !table.text(row, "seed").empty();
    const std::int32_t seed = seeded ? whole_number(table, row, "seed") : 0;
    configurations_.push_back({table.text(row, "method"), table.text(row, "params"), table.cell(row, "budget").budget(),
                               static_cast<std::uint32_t>(seed), seeded});
  }
  return at->second;
}

void TableResults::add_value(const CsvTable& table, const CsvRow& row, double value, compare::QueryValues& values) {
  values.values.push_back(value);
  values.dense |= table.text(row, "dense") == "1";
  if (table.has("total_bytes") && table.has("bytes_read")) {
    values.bytes_held = table.number(row, "total_bytes");
    values.bytes_read = table.number(row, "bytes_read");
  }
  values.status = status_of(table, row);
  if (values.status != replay::Status::ok) values.reason = table.text(row, "reason");
}

std::int32_t whole_number(const CsvTable& table, const CsvRow& row, const char* column) {
  const double value = table.number(row, column);
  if (!(std::abs(value) <= 2147483647.0) || value != std::floor(value)) {
    throw Error("{}:{}: column '{}' holds '{}', which is not the number of a layer, head, query or seed", table.file,
                row.line, column, table.text(row, column));
  }
  return static_cast<std::int32_t>(value);
}

}  // namespace kvbench::report
