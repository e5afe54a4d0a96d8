// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/results.hpp>

#include <cmath>

namespace kvbench::replay {

std::string_view name_of(Status status) {
  constexpr std::string_view names[] = {"ok", "skipped", "failed", "infeasible"};
  return names[static_cast<std::size_t>(status)];
}

std::string_view name_of(Protocol protocol) {
  constexpr std::string_view names[] = {"auto", "prefill", "decode", "stream"};
  return names[static_cast<std::size_t>(protocol)];
}

double Bytes::of(CostKind cost) const {
  switch (cost) {
    case CostKind::memory:
      return kv + meta;
    case CostKind::fast:
      return fast;
    case CostKind::read:
      return read;
  }
  return NAN;
}

}  // namespace kvbench::replay
