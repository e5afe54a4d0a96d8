// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/metrics/table.hpp>

namespace kvbench::replay {

std::string metric_names() {
  std::string names;
  for (const AttentionMetric& metric : attention_metrics) {
    if (!names.empty()) names += ',';
    names += metric.info.name;
  }
  return names;
}

void set_metrics(const Answered& answered, MetricRow& row) {
  for (std::size_t m = 0; m < metric_count; ++m) {
    if (const auto* value = std::get_if<double (*)(const Answered&)>(&attention_metrics[m].value))
      row[m] = static_cast<float>((*value)(answered));
  }
}

}  // namespace kvbench::replay
