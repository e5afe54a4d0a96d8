// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/bytes.hpp>

#include <algorithm>

namespace kvbench::replay {

Bytes account(const methods::Footprint& footprint, methods::Element kv, double entries_per_query, Index tokens, Index d,
              Index dv) {
  Bytes bytes{.full = static_cast<double>(tokens * (d + dv)) * element_bytes(kv, methods::Element::f16)};
  for (const methods::FootprintArray& array : footprint) {
    if (dv == 0 && array.content == methods::Content::values) continue;
    const double row = static_cast<double>(array.cols) * element_bytes(array.element, kv);
    const double total = static_cast<double>(array.rows) * row;
    (array.meta() ? bytes.meta : bytes.kv) += total;
    (array.tier == methods::Tier::fast ? bytes.fast : bytes.slow) += total;
    if (array.read == methods::Read::every_query) bytes.read += total;
    if (array.read == methods::Read::with_entry)
      bytes.read += std::min(static_cast<double>(array.rows), array.share * entries_per_query) * row;
  }
  return bytes;
}

}  // namespace kvbench::replay
