// SPDX-License-Identifier: Apache-2.0
// The columns of a result table, declared once: writer, --help, docs and tests read this table.
#pragma once

#include <functional>
#include <span>
#include <string>

#include <kvbench/replay/records/record.hpp>

namespace kvbench {

struct Column {
  std::string key;   ///< header of the CSV; carries the unit where there is one
  std::string unit;  ///< "", "tokens", "B", "flop", "s"
  std::string type;  ///< text, integer, number
  std::string doc;
  std::function<std::string(const Record&)> text;  ///< "" = no value
  bool time = false;                               ///< left out by --no-times
};

std::span<const Column> columns();

/// Shortest decimal text that reads back as the same double; "" for NaN, "inf" for infinity.
std::string number_text(double value);

}  // namespace kvbench
