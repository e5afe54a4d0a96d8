// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/document/document.hpp>

#include <algorithm>

namespace kvbench::report {

DocTable compact(DocTable table) {
  for (std::size_t c = table.columns.size(); c-- > 0;) {
    if (std::ranges::any_of(table.rows, [&](const auto& row) { return !row[c].text.empty(); })) continue;
    const auto at = static_cast<std::ptrdiff_t>(c);
    table.columns.erase(table.columns.begin() + at);
    for (auto& row : table.rows) row.erase(row.begin() + at);
    if (c < table.merged) --table.merged;
  }
  return table;
}

}  // namespace kvbench::report
