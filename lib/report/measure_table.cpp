// SPDX-License-Identifier: Apache-2.0
#include <kvbench/report/measure_table.hpp>

#include <fmt/format.h>

#include <kvbench/core/version.hpp>
#include <kvbench/report/column.hpp>

namespace kvbench {

std::string measures_csv(std::span<const MeasureRow> rows) {
  std::string out = "run,trace,sha256,model,prompt,layer,kv_head,measure,array,x,value,count,version,commit\n";
  for (const MeasureRow& r : rows) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(r.run), csv_field(r.trace), r.sha256,
                       csv_field(r.model), csv_field(r.prompt), r.layer, r.kv_head, name_of(r.measure), r.array, r.x,
                       number_text(r.value), r.count, version(), commit());
  }
  return out;
}

}  // namespace kvbench
