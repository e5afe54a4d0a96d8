// SPDX-License-Identifier: Apache-2.0
// A cell of a CSV file that is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <kvbench/core/budget.hpp>

namespace kvbench::report {

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
