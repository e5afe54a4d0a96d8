// SPDX-License-Identifier: Apache-2.0
// Building blocks of text tables, and a cell of a CSV file that is read.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <kvbench/core/budget.hpp>

namespace kvbench::report {

/// Every file of `kvbench report` contains this text, by which it is known as one.
inline constexpr std::string_view written_by = "Written by kvbench";

/// One CSV line with LF, quoted as in RFC 4180. Texts that a spreadsheet would compute (they begin with = + - @, a tab
/// or a line end, and are not numbers) begin with an apostrophe, which csv_text() removes. Text that is not UTF-8 is
/// written as printable().
std::string csv_line(std::span<const std::string> fields);
/// A text in quotes, as JSON has it. Bytes that are not UTF-8 become \xHH.
std::string json_text(std::string_view text);
/// null for "", the digits of a number where `number` is set and the text is one that JSON knows, else json_text().
std::string json_value(const std::string& text, bool number);
/// The text that csv_line() wrote as this field, without quotes.
std::string csv_text(std::string field);

/// Shortest decimal text that reads back as the same double; "" for NaN, "inf" for infinity.
std::string number_text(double value);

/// The text of a value in a CSV: numbers as number_text(), enumerations by name.
inline std::string value_text(const std::string& value) { return value; }
inline std::string value_text(double value) { return number_text(value); }
inline std::string value_text(const Budget& value) { return value.text(); }
template <std::integral T>
std::string value_text(T value) {
  return std::to_string(value);
}
template <class T>
requires std::is_enum_v<T> std::string value_text(T value) { return std::string(name_of(value)); }

/// Three significant digits; "-" for NaN.
std::string short_number(double value);

/// Three significant digits including trailing zeros: "0.480"; "2.50e+07" from a million on; "" for NaN.
std::string three_digits(double value);

/// "0.117 [0.112, 0.122]", or the mean alone where there is no interval.
std::string interval_text(double mean, double lo, double hi);

/// "0.112..0.122", or "-" where there is no interval.
std::string short_interval(double lo, double hi);

/// "5.41 to 27.4", or one number where all values are equal. `values` must not be empty.
std::string range_text(std::span<const double> values);

/// Distinct values in the order in which they were first added.
template <class T>
class Distinct {
 public:
  /// Whether it is a new one.
  bool add(const T& value) {
    const bool fresh = known_.insert(value).second;
    if (fresh) list_.push_back(value);
    return fresh;
  }
  const std::vector<T>& list() const { return list_; }

 private:
  std::vector<T> list_;
  std::set<T> known_;
};
using DistinctTexts = Distinct<std::string>;

/// Position of the first byte that is not UTF-8 text, npos if there is none. Control characters other than tab and line
/// ends are not text.
std::size_t invalid_utf8(std::string_view text);

/// Escapes a text for HTML and SVG, in content and in quoted attributes.
std::string escape_xml(std::string_view text);

/// The text of a cell and its place, which messages name.
struct CsvCell {
  const std::string& file;
  std::size_t line;
  std::string_view column;
  const std::string& text;

  /// NaN for an empty cell. Throws Error where the text is not a number.
  double number() const;
  /// A whole number from `lo` to `hi`, of at most 2^53; 0 for an empty cell. Throws Error: "..., which is not WHAT".
  std::int64_t whole(double lo, double hi, std::string_view what) const;
  /// Whole numbers from 0 to 2^53.
  std::int64_t count() const { return whole(0, 9007199254740992.0, "a count"); }
  /// Throws Error where the text is not a budget.
  Budget budget() const;
  /// Throws Error: "..., which is not WHAT".
  [[noreturn]] void refuse(std::string_view what) const;
};

}  // namespace kvbench::report
