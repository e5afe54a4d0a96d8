// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/raw_schema.hpp>

#include <cstdlib>

namespace kvbench::replay::raw {

constexpr int schema_major = 1;

void require(bool holds, const InputObject& where, const std::string& fault) {
  if (!holds) throw Error("{}: {}; see docs/results.md, \"Raw results\".", where.where(), fault);
}

void check_schema(const InputObject& root, const std::string& path, const char* holds) {
  const std::string schema = root.text("kvbench_raw").value_or("");
  if (schema.empty()) {
    throw Error("{} has no attribute kvbench_raw, so it holds no {}; see docs/results.md.{}", path, holds,
                root.text("kvbench_trace") ? " It is a trace: `kvbench replay --raw` makes raw results from it." : "");
  }
  if (std::atoi(schema.c_str()) != schema_major) {
    throw Error("{}: its schema is kvbench_raw {}, and this kvbench reads {}.x; use a newer kvbench.", path, schema,
                schema_major);
  }
}

}  // namespace kvbench::replay::raw
