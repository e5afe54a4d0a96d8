// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/bytes.hpp>

#include <algorithm>

namespace kvbench::replay {

namespace {

/// Rows of an array that a query reads.
double rows_read(const methods::FootprintArray& array, double entries, double estimates) {
  const auto rows = static_cast<double>(array.rows);
  switch (array.read) {
    case methods::Read::every_query:
      return rows;
    case methods::Read::with_entry:
      return std::min(rows, array.share * entries + array.extra);
    case methods::Read::with_estimate:
      return std::min(rows, estimates + array.extra);
    default:
      return 0;
  }
}

}  // namespace

Bytes account(const methods::Footprint& footprint, methods::Element kv, double entries_per_query, Index tokens, Index d,
              Index dv, double estimates_per_query) {
  Bytes bytes{.full = static_cast<double>(tokens * (d + dv)) * element_bytes(kv, methods::Element::f16)};
  for (const methods::FootprintArray& array : footprint) {
    if (dv == 0 && array.content == methods::Content::values) continue;
    const double row = static_cast<double>(array.cols) * element_bytes(array.element, kv);
    const double total = static_cast<double>(array.rows) * row;
    (array.meta() ? bytes.meta : bytes.kv) += total;
    (array.tier == methods::Tier::fast ? bytes.fast : bytes.slow) += total;
    bytes.read += rows_read(array, entries_per_query, estimates_per_query) * row;
  }
  return bytes;
}

}  // namespace kvbench::replay
