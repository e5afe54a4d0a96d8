// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/measure/cluster_cache.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>

#include <kvbench/replay/exact/radix_sort.hpp>

namespace kvbench::replay {
namespace {

constexpr Index never = std::numeric_limits<Index>::max();

/// The steps of one run with clusters numbered 0, 1, ...
struct Run {
  struct Use {
    std::size_t cluster;
    double tokens;
    Index next = never;  ///< the next step that selects the cluster
  };
  std::size_t first = 0;           ///< among all steps
  std::vector<Use> uses;           ///< ordered by step
  std::vector<std::size_t> begin;  ///< first use of each step, and the end
  std::size_t clusters = 0;

  Index length() const { return static_cast<Index>(begin.size()) - 1; }
  std::span<const Use> at(Index step) const {
    const auto t = static_cast<std::size_t>(step);
    return std::span(uses).subspan(begin[t], begin[t + 1] - begin[t]);
  }
};

Run make_run(std::span<const ClusterStep> steps, std::size_t first) {
  Run run{.first = first};
  std::unordered_map<std::int32_t, std::size_t> last_uses;  // by cluster
  run.begin.push_back(0);
  for (const ClusterStep& step : steps) {
    const Index t = run.length();
    for (const ClusterUse& use : step.clusters) {
      const auto [found, inserted] = last_uses.try_emplace(use.cluster);
      Run::Use& made = run.uses.emplace_back(Run::Use{run.clusters, static_cast<double>(use.tokens)});
      if (inserted) {
        ++run.clusters;
      } else {
        made.cluster = run.uses[found->second].cluster;
        run.uses[found->second].next = t;
      }
      found->second = run.uses.size() - 1;
    }
    run.begin.push_back(run.uses.size());
  }
  return run;
}

/// Runs of steps at consecutive positions.
std::vector<Run> make_runs(std::span<const ClusterStep> steps) {
  std::vector<Run> runs;
  for (std::size_t begin = 0; begin < steps.size();) {
    std::size_t end = begin + 1;
    while (end < steps.size() && steps[end].position == steps[end - 1].position + 1) ++end;
    runs.push_back(make_run(steps.subspan(begin, end - begin), begin));
    begin = end;
  }
  return runs;
}

/// Computes the shares of a cache of the last R steps; returns the largest number of clusters that it held before a
/// step with a rate.
Index simulate_window(const Run& run, Index window, std::span<CacheHits> hits) {
  std::vector<Index> last(run.clusters, -1);        // last step that selected each cluster, -1: none
  std::vector<Index> leaving(run.begin.size(), 0);  // number of clusters whose last selection is at each step
  Index held = 0, largest = 0;
  for (Index t = 0; t < run.length(); ++t) {
    if (t > window) held -= leaving[static_cast<std::size_t>(t - window - 1)];
    double tokens = 0, hit_tokens = 0, hit_clusters = 0;
    for (const Run::Use& use : run.at(t)) {
      const bool hit = last[use.cluster] >= 0 && last[use.cluster] >= t - window;
      tokens += use.tokens;
      hit_tokens += hit ? use.tokens : 0;
      hit_clusters += hit ? 1 : 0;
    }
    if (t >= window) {
      largest = std::max(largest, held);
      CacheHits& rates = hits[static_cast<std::size_t>(t)];
      rates.tokens = hit_tokens / tokens;  // 0 / 0 where no cluster answers
      rates.clusters = hit_clusters / static_cast<double>(run.at(t).size());
    }
    for (const Run::Use& use : run.at(t)) {
      Index& step = last[use.cluster];
      if (step >= 0 && step >= t - window) {
        --leaving[static_cast<std::size_t>(step)];
      } else {
        ++held;
      }
      step = t;
      ++leaving[static_cast<std::size_t>(t)];
    }
  }
  return largest;
}

/// After each step the cache keeps the clusters whose next uses are earliest. Each interval from one use to the next
/// gives one hit where the next use has a rate. At most `capacity` intervals may overlap, and dropping the one that
/// ends last is optimal.
void simulate_belady(const Run& run, Index window, Index capacity, std::span<CacheHits> hits) {
  std::vector<Index> held(run.begin.size(), 0);  // clusters in the cache by the step that uses them next
  Index total = 0, furthest = 0;                 // of all steps; no later step holds a cluster
  for (Index t = 0; t < run.length(); ++t) {
    const Index hit = std::exchange(held[static_cast<std::size_t>(t)], 0);
    total -= hit;
    if (t >= window) {
      hits[static_cast<std::size_t>(t)].belady = static_cast<double>(hit) / static_cast<double>(run.at(t).size());
    }
    for (const Run::Use& use : run.at(t)) {
      if (use.next == never || use.next < window) continue;
      ++held[static_cast<std::size_t>(use.next)];
      ++total;
      furthest = std::max(furthest, use.next);
    }
    while (total > capacity) {
      Index& last = held[static_cast<std::size_t>(furthest)];
      const Index dropped = std::min(last, total - capacity);
      last -= dropped;
      total -= dropped;
      if (last == 0) --furthest;
    }
  }
}

std::vector<CacheHits> hits_of(const std::vector<Run>& runs, std::size_t steps, Index window) {
  std::vector<CacheHits> hits(steps, {NAN, NAN, NAN});
  for (const Run& run : runs) {
    const std::span<CacheHits> of_run = std::span(hits).subspan(run.first, static_cast<std::size_t>(run.length()));
    simulate_belady(run, window, simulate_window(run, window, of_run), of_run);
  }
  return hits;
}

}  // namespace

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

std::vector<CacheHits> cache_hits(std::span<const ClusterStep> steps, Index window) {
  return hits_of(make_runs(steps), steps.size(), window);
}

void set_cache_hits(std::span<const ClusterStep> steps, std::span<MetricRow> rows) {
  const std::vector<Run> runs = make_runs(steps);
  std::map<Index, std::vector<CacheHits>> by_window;
  for (std::size_t m = 0; m < metric_count; ++m) {
    const auto* metric = std::get_if<HitRate>(&attention_metrics[m].value);
    if (metric == nullptr) continue;
    for (MetricRow& row : rows) row[m] = NAN;
    const auto [hits, added] = by_window.try_emplace(metric->window);
    if (added) hits->second = hits_of(runs, steps.size(), metric->window);
    for (std::size_t s = 0; s < steps.size(); ++s)
      rows[static_cast<std::size_t>(steps[s].query)][m] = static_cast<float>(hits->second[s].*metric->rate);
  }
}

}  // namespace kvbench::replay
