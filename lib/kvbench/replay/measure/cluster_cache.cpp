// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/cluster_cache.hpp>

#include <cmath>
#include <unordered_map>

#include <kvbench/replay/exact/radix_sort.hpp>

namespace kvbench::replay {

ClusterStep cluster_step(const HostEntries& entries, Index g, Index i, std::int32_t first, std::int32_t last) {
  // Neighbouring slots are often in one cluster, or already in order.
  std::vector<ClusterUse> uses;
  entries.each(g, i, first, last, [&](std::int32_t, std::size_t table, std::size_t slot) {
    const std::int32_t cluster = entries.cluster_id(table, slot);
    if (cluster < 0) return;
    if (uses.empty() || uses.back().cluster != cluster) uses.push_back({cluster, 0});
    ++uses.back().tokens;
  });
  radix_sort(uses, [](const ClusterUse& use) { return static_cast<std::uint32_t>(use.cluster); });
  ClusterStep step;
  for (const ClusterUse& use : uses) {
    if (step.clusters.empty() || step.clusters.back().cluster != use.cluster) step.clusters.push_back({use.cluster, 0});
    step.clusters.back().tokens += use.tokens;
  }
  return step;
}

std::vector<double> cache_hits(std::span<const ClusterStep> steps, Index window) {
  std::vector<double> hits(steps.size(), NAN);
  std::unordered_map<std::int32_t, std::size_t> last_uses;  // by cluster: the step of the run that last selected it
  std::size_t begin = 0;
  const auto past = static_cast<std::size_t>(window);
  for (std::size_t t = 0; t < steps.size(); ++t) {
    if (t > 0 && steps[t].position != steps[t - 1].position + 1) begin = t, last_uses.clear();
    double tokens = 0, hit = 0;
    for (const ClusterUse& use : steps[t].clusters) {
      const auto [last, is_first] = last_uses.try_emplace(use.cluster, t);
      tokens += use.tokens;
      if (!is_first && last->second + past >= t) hit += use.tokens;
      last->second = t;
    }
    if (t - begin >= past) hits[t] = hit / tokens;  // 0 / 0 where no cluster answers
  }
  return hits;
}

void set_cache_hits(std::span<const ClusterStep> steps, std::span<MetricRow> rows) {
  for (const Metric m : all_metrics()) {
    const std::optional<Index> window = hit_rate_window(m);
    if (!window) continue;
    for (MetricRow& row : rows) row[m] = NAN;
    const std::vector<double> hits = cache_hits(steps, *window);
    for (std::size_t s = 0; s < steps.size(); ++s)
      rows[static_cast<std::size_t>(steps[s].query)][m] = static_cast<float>(hits[s]);
  }
}

}  // namespace kvbench::replay
