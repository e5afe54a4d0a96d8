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

std::string_view name_of(Metric metric) {
  constexpr std::string_view names[] = {"rel_err",
                                        "relerr_balancekv",
                                        "err_bound_op",
                                        "err_bound_fro",
                                        "mass_err",
                                        "dir_err",
                                        "log_z_err",
                                        "recall",
                                        "mass_recall",
                                        "cache_hit_r1",
                                        "cache_hit_r2",
                                        "cache_hit_r4",
                                        "cache_hit_r1_clusters",
                                        "cache_hit_r2_clusters",
                                        "cache_hit_r4_clusters",
                                        "cache_hit_r1_belady",
                                        "cache_hit_r2_belady",
                                        "cache_hit_r4_belady"};
  static_assert(std::size(names) == metric_count);
  return names[static_cast<std::size_t>(metric)];
}

std::string metric_names() {
  std::string names;
  for (std::size_t m = 0; m < metric_count; ++m) {
    if (m > 0) names += ',';
    names += name_of(static_cast<Metric>(m));
  }
  return names;
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
