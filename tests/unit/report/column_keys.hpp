// SPDX-License-Identifier: Apache-2.0
// What holds for the columns of every table.
#pragma once

#include <algorithm>
#include <set>
#include <span>
#include <string>

#include <doctest/doctest.h>

#include <kvbench/report/columns/column.hpp>

namespace kvbench::testing {

inline bool snake_case(const std::string& key) {
  return !key.empty() && key.front() >= 'a' && key.front() <= 'z' && key.back() != '_' &&
         key.find("__") == std::string::npos &&
         std::ranges::all_of(key, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

/// Keys are unique, have a description, and times come last.
template <class Row>
void check_keys(std::span<const report::Column<Row>> columns) {
  std::set<std::string> keys;
  for (const report::Column<Row>& column : columns) {
    CAPTURE(column.key);
    CHECK(keys.insert(column.key).second);
    CHECK(snake_case(column.key));
    CHECK(!column.doc.empty());
    CHECK(column.value.print);
  }
  CHECK(std::ranges::is_sorted(columns, {}, &report::Column<Row>::time));
}

}  // namespace kvbench::testing
