// SPDX-License-Identifier: Apache-2.0
// Columns of the tables that kvbench writes. Each column is declared once; the CSV writer, --columns, the documentation
// and the tests use the declaration.
#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <kvbench/core/version.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {

template <class Row>
struct Column {
  std::string key;  ///< header of the CSV; ends with the unit, if any
  std::string doc;
  std::function<std::string(const Row&)> text;  ///< "" where the row has no value
  std::string type = "", unit = "";             ///< text, integer or number; tokens, B, flop or s; empty: not stated
  bool time = false;                            ///< left out by --no-times
};

/// The text of a value in a CSV: numbers as number_text(), enumerations by name.
inline std::string value_text(const std::string& value) { return value; }
inline std::string value_text(double value) { return number_text(value); }
template <std::integral T>
std::string value_text(T value) {
  return std::to_string(value);
}
template <class T>
requires std::is_enum_v<T> std::string value_text(T value) { return std::string(name_of(value)); }

/// The text of a member of a row.
template <class Row, class T>
auto text_of(T Row::*member) {
  return [member](const Row& row) { return value_text(row.*member); };
}
/// The same for an optional member; `absent` where it has no value.
template <class Row, class T>
auto text_of(std::optional<T> Row::*member, const char* absent) {
  return [member, absent](const Row& row) { return row.*member ? value_text(*(row.*member)) : absent; };
}

template <class Row>
Column<Row> version_column(const char* type = "") {
  return {"version", "kvbench version", [](const Row&) { return std::string(version()); }, type};
}
template <class Row>
Column<Row> commit_column(const char* type = "") {
  return {"commit", "commit that kvbench was built from", [](const Row&) { return std::string(commit()); }, type};
}

/// One header line, and one csv_line() per row.
template <class Row>
std::string csv_of(std::span<const Column<Row>> columns, std::span<const Row> rows, bool times = true) {
  std::string out;
  const auto add_line = [&](auto field) {
    std::vector<std::string> fields;
    for (const Column<Row>& column : columns) {
      if (!column.time || times) fields.push_back(field(column));
    }
    out += csv_line(fields);
  };
  add_line([](const Column<Row>& column) { return column.key; });
  for (const Row& row : rows) add_line([&](const Column<Row>& column) { return column.text(row); });
  return out;
}

}  // namespace kvbench::report
