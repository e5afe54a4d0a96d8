// SPDX-License-Identifier: Apache-2.0
// Columns of the tables that kvbench writes and reads. Each column is declared once: its name and meaning, how a row
// prints its value and how a cell sets it. The CSV writer and reader, --columns, the documentation and the tests use
// the declaration.
#pragma once

#include <cmath>
#include <concepts>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <kvbench/core/enumeration.hpp>
#include <kvbench/core/version.hpp>
#include <kvbench/replay/metrics/info.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {

/// The value of a column in both directions.
template <class Row>
struct Value {
  std::function<std::string(const Row&)> print;          ///< "" where the row has no value
  std::function<void(Row&, const CsvCell&)> parse = {};  ///< empty: the value follows from those of other columns
  bool needed = false;                                   ///< a table without the column is not read
  bool number = false;                                   ///< printed as a number where it is one (JSON)
  bool json = false;                                     ///< printed as JSON, a list or an object
};

/// What a column tells apart: the sections of a report, the places within one, and there configurations and queries.
enum class Tells { nothing, section, place, configuration, query };

template <class Row>
struct Column {
  std::string key;  ///< header of the CSV; ends with the unit, if any
  std::string doc;
  Value<Row> value;
  std::string type = "", unit = "";  ///< text, integer or number; tokens, B, flop or s; empty: not stated
  bool time = false;                 ///< left out by --no-times
  Tells tells = Tells::nothing;
  replay::Limits limits = replay::limits::any_sign;  ///< of its numbers; those with a unit are at least 0
};

/// Throws Error with file, line and column where a cell holds a number that the column cannot have. A share may exceed
/// its limit by what rounding adds.
template <class Row>
void check_limits(const CsvCell& cell, const Column<Row>& column) {
  const replay::Limits& limits = column.unit.empty() ? column.limits : replay::limits::at_least_zero;
  if (std::isinf(limits.lo) && std::isinf(limits.hi)) return;
  const double value = cell.number();
  if (!column.unit.empty() && std::isinf(value)) cell.refuse("finite");
  if (value < limits.lo || value > limits.hi * (1 + 1e-5))
    cell.refuse(std::isinf(limits.hi) ? fmt::format("a number of at least {}", limits.lo)
                                      : fmt::format("a number from {} to {}", limits.lo, limits.hi));
}

/// Sets a value from its text. An empty cell is "", NaN, 0 or no budget. Throws Error with file, line and column.
inline void parse_value(const CsvCell& cell, std::string& value) { value = cell.text; }
inline void parse_value(const CsvCell& cell, double& value) { value = cell.number(); }
inline void parse_value(const CsvCell& cell, Budget& value) { value = cell.text.empty() ? Budget() : cell.budget(); }
inline void parse_value(const CsvCell& cell, bool& value) {
  value = cell.whole(0, 1, "0 or 1") == 1;  // pandas writes 1.0 beside missing values
}
template <std::integral T>
void parse_value(const CsvCell& cell, T& value) {
  constexpr double largest = sizeof(T) < 8 ? static_cast<double>(std::numeric_limits<T>::max()) : 9007199254740992.0;
  value = static_cast<T>(cell.whole(0, largest, "a whole number of at least 0"));
}
template <class T>
requires std::is_enum_v<T>
void parse_value(const CsvCell& cell, T& value) {
  static_assert(enumerator_count<T> > 0, "an enumeration without enumerators needs a specialisation");
  std::string names;
  for (std::size_t v = 0; v < enumerator_count<T>; ++v) {
    value = static_cast<T>(v);
    if (cell.text == name_of(value)) return;
    names += (v == 0 ? "one of " : ", ") + std::string(name_of(value));
  }
  cell.refuse(names);
}

/// Whether invoking F on a row gives a reference through which the row can be changed: a pointer to a member, or a
/// function such as [](auto& row) -> auto& { return row.bytes.kv; }.
template <class F, class Row>
concept Member = std::is_lvalue_reference_v<std::invoke_result_t<F, Row&>> &&
    !std::is_const_v<std::remove_reference_t<std::invoke_result_t<F, Row&>>>;

/// Whether invoking F on a row gives a number.
template <class F, class Row>
constexpr bool gives_number = std::is_arithmetic_v<std::remove_cvref_t<std::invoke_result_t<F, const Row&>>>;

inline constexpr auto always = [](const auto&) { return true; };

/// The value that `of` gives for rows with `has(row)`, else no text. A function that computes its value is only
/// printed.
template <class Row, class F, class Has>
Value<Row> value_where(Has has, F of) {
  Value<Row> value{
      .print = [has, of](const Row& row) { return has(row) ? value_text(std::invoke(of, row)) : std::string(); },
      .number = gives_number<F, Row>};
  if constexpr (Member<F, Row>)
    value.parse = [of](Row& row, const CsvCell& cell) { parse_value(cell, std::invoke(of, row)); };
  return value;
}
template <class Row, class T>
Value<Row> value_of(T Row::*member) {
  return value_where<Row>(always, member);
}
/// The same for a member of a base, of which the row has to be named.
template <class Row, class T, class Base>
requires(!std::is_same_v<Row, Base>) Value<Row> value_of(T Base::*member) { return value_where<Row>(always, member); }
/// The same for an optional member; `absent` where it has no value, which an empty cell means too.
template <class Row, class T, class Base>
Value<Row> optional_value(std::optional<T> Base::*member, const char* absent) {
  return {.print = [member, absent](const Row& row) { return row.*member ? value_text(*(row.*member)) : absent; },
          .parse =
              [member, absent](Row& row, const CsvCell& cell) {
                if (cell.text.empty() || cell.text == absent) return (row.*member).reset();
                parse_value(cell, (row.*member).emplace());
              },
          .number = std::is_arithmetic_v<T>};
}
template <class Row, class T>
Value<Row> value_of(std::optional<T> Row::*member, const char* absent) {
  return optional_value<Row>(member, absent);
}
/// Text that is only printed.
template <class Row>
Value<Row> printed(std::function<std::string(const Row&)> text) {
  return {.print = std::move(text)};
}
template <class Row>
Value<Row> needed(Value<Row> value) {
  value.needed = true;
  return value;
}

template <class Row>
Column<Row> needed(Column<Row> column) {
  column.value.needed = true;
  return column;
}

/// A column of probabilities.
template <class Row>
Column<Row> of_share(std::type_identity_t<Column<Row>> column) {
  column.limits = replay::limits::share;
  return column;
}

template <class Row>
Column<Row> version_column(const char* type = "") {
  return {"version", "kvbench version", printed<Row>([](const Row&) { return std::string(version()); }), type};
}
template <class Row>
Column<Row> commit_column(const char* type = "") {
  return {"commit", "commit that kvbench was built from",
          printed<Row>([](const Row&) { return std::string(commit()); }), type};
}

/// Rows whose type the columns tell.
template <class Row>
using RowsOf = std::span<const std::type_identity_t<Row>>;

/// RFC 4180 quoting, LF: one header line, and one csv_line() per row.
template <class Row>
std::string csv_of(std::span<const Column<Row>> columns, RowsOf<Row> rows, bool times = true) {
  std::string out;
  const auto add_line = [&](auto field) {
    std::vector<std::string> fields;
    fields.reserve(columns.size());
    for (const Column<Row>& column : columns) {
      if (!column.time || times) fields.push_back(field(column));
    }
    out += csv_line(fields);
  };
  add_line([](const Column<Row>& column) { return column.key; });
  for (const Row& row : rows) add_line([&](const Column<Row>& column) { return column.value.print(row); });
  return out;
}

/// An array of objects, one per row and line: numbers as numbers, values that a row lacks as null.
template <class Row>
std::string json_of(std::span<const Column<Row>> columns, RowsOf<Row> rows, bool times = true) {
  std::string out = "[";
  for (const Row& row : rows) {
    out += &row == rows.data() ? "\n{" : ",\n{";
    for (const Column<Row>& column : columns) {
      if (column.time && !times) continue;
      const bool number = column.value.number || column.type == "integer" || column.type == "number";
      if (&column != columns.data()) out += ", ";
      const std::string text = column.value.print(row);
      out += json_text(column.key) + ": " + (column.value.json ? text : json_value(text, number));
    }
    out += "}";
  }
  return out + "\n]\n";
}

/// The rows as --format names: json, else CSV.
template <class Row>
std::string table_of(const std::string& format, std::span<const Column<Row>> columns, RowsOf<Row> rows,
                     bool times = true) {
  return format == "json" ? json_of(columns, rows, times) : csv_of(columns, rows, times);
}

}  // namespace kvbench::report
