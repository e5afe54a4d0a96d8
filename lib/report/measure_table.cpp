// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/measure_table.hpp>

#include <fmt/format.h>

#include <kvbench/core/version.hpp>
#include <kvbench/report/column.hpp>
#include <kvbench/report/text.hpp>

namespace kvbench {

std::string measures_csv(std::span<const MeasureRow> rows) {
  const std::vector<std::string> header = {"run",     "trace", "sha256", "model", "prompt", "layer",   "kv_head",
                                           "measure", "array", "x",      "value", "count",  "version", "commit"};
  std::string out = csv_line(header);
  for (const MeasureRow& r : rows) {
    const std::vector<std::string> fields = {r.run,
                                             r.trace,
                                             r.sha256,
                                             r.model,
                                             r.prompt,
                                             fmt::format("{}", r.layer),
                                             fmt::format("{}", r.kv_head),
                                             std::string(name_of(r.measure)),
                                             r.array,
                                             fmt::format("{}", r.x),
                                             number_text(r.value),
                                             fmt::format("{}", r.count),
                                             std::string(version()),
                                             std::string(commit())};
    out += csv_line(fields);
  }
  return out;
}

}  // namespace kvbench
