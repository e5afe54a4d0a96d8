// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/claims/check_table.hpp>

#include <fmt/format.h>

#include <kvbench/report/claims/check_summary.hpp>
#include <kvbench/report/columns/checks.hpp>

namespace kvbench::report {
namespace {

std::string failures_text(const bounds::CheckRow& r) {
  return r.failures && r.trials ? fmt::format("{}/{}", *r.failures, *r.trials) : "-";
}

}  // namespace

std::string check_markdown(std::span<const bounds::CheckRow> rows) {
  TextRows cells = {{"claim", "part", "on", "literal", "tight", "data", "measured", "q99", "failures", "verdict"}};
  for (const bounds::CheckRow& r : rows) {
    cells.push_back({r.check, r.part, subject_text(r)});
    for (const double value : {r.literal, r.tight, r.data, r.measured, r.measured_q99}) {
      cells.back().push_back(short_number(value));
    }
    cells.back().push_back(failures_text(r));
    cells.back().emplace_back(name_of(r.verdict));
  }
  const std::string out = markdown_rows(cells, [](std::size_t column) { return column < 3 || column == 9; });
  return out + "\n" + check_findings(rows);
}

}  // namespace kvbench::report
