// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/claims/sections.hpp>

#include <algorithm>
#include <iterator>
#include <string>

#include <fmt/format.h>

#include <kvbench/report/columns/tables.hpp>
#include <kvbench/report/text/text.hpp>

namespace kvbench::report {
namespace {

std::string failures_text(const bounds::CheckRow& r) {
  return r.failures && r.trials ? fmt::format("{}/{}", *r.failures, *r.trials) : "-";
}

}  // namespace

std::vector<Block> every_check(std::span<const bounds::CheckRow> rows) {
  DocTable table{.columns = {{"claim"},
                             {"part"},
                             {"on"},
                             {"literal", true},
                             {"tight", true},
                             {"data", true},
                             {"measured", true},
                             {"q99", true},
                             {"failures", true},
                             {"verdict"}}};
  for (const bounds::CheckRow& r : rows) {
    auto& cells = table.rows.emplace_back(std::vector<TableCell>{r.check, r.part, subject_text(r)});
    for (const double value : {r.literal, r.tight, r.data, r.measured, r.measured_q99})
      cells.emplace_back(short_number(value));
    cells.emplace_back(failures_text(r));
    cells.emplace_back(std::string(name_of(r.verdict)));
  }
  std::vector<Block> blocks = {std::move(table)};
  std::ranges::move(check_findings(rows), std::back_inserter(blocks));
  return blocks;
}

}  // namespace kvbench::report
