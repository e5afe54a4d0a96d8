// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/cluster_cache.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

namespace kvbench {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr Index never = std::numeric_limits<Index>::max();

/// The steps of one run with clusters numbered 0, 1, ...
struct Run {
  struct Use {
    std::size_t cluster;
    double tokens;
  };
  std::vector<std::vector<Use>> steps;
  std::size_t clusters = 0;

  explicit Run(std::span<const ClusterStep> run) {
    std::map<std::int32_t, std::size_t> numbers;
    for (const ClusterStep& step : run) {
      std::vector<Use>& uses = steps.emplace_back();
      for (const ClusterUse& use : step.clusters) {
        uses.push_back({numbers.try_emplace(use.cluster, numbers.size()).first->second, static_cast<double>(use.tokens)});
      }
    }
    clusters = numbers.size();
  }
  Index length() const { return static_cast<Index>(steps.size()); }
  const std::vector<Use>& at(Index step) const { return steps[static_cast<std::size_t>(step)]; }
};

/// Shares that the window of the last R steps gives; returns the largest number of clusters that it held before a step with a
/// rate.
Index simulate_window(const Run& run, Index window, std::span<CacheHits> hits) {
  std::vector<Index> last(run.clusters, -1);        // step that selected each cluster last, -1: none
  std::vector<Index> leaving(run.steps.size(), 0);  // clusters selected last at each step
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

/// For each use of each step, the next step with a rate that selects the cluster, or `never` where the next use has no rate.
std::vector<std::vector<Index>> next_uses(const Run& run, Index window) {
  std::vector<Index> next(run.clusters, never);
  std::vector<std::vector<Index>> of_step(run.steps.size());
  for (Index t = run.length() - 1; t >= 0; --t) {
    for (const Run::Use& use : run.at(t)) {
      const Index step = next[use.cluster];
      of_step[static_cast<std::size_t>(t)].push_back(step >= window ? step : never);
      next[use.cluster] = t;
    }
  }
  return of_step;
}

/// After each step, of the clusters at hand those stay whose next uses come first: each stay from one use to the next is an
/// interval worth one hit, at most `capacity` of them may overlap, and dropping the one that ends last is optimal.
void simulate_belady(const Run& run, Index window, Index capacity, std::span<CacheHits> hits) {
  const auto next = next_uses(run, window);
  std::vector<Index> held;  // next uses of the clusters in the cache
  for (Index t = 0; t < run.length(); ++t) {
    const auto hit = std::erase(held, t);
    if (t >= window) {
      hits[static_cast<std::size_t>(t)].belady = static_cast<double>(hit) / static_cast<double>(run.at(t).size());
    }
    for (const Index step : next[static_cast<std::size_t>(t)]) {
      if (step != never) held.push_back(step);
    }
    if (std::ssize(held) > capacity) {
      std::ranges::nth_element(held, held.begin() + capacity);
      held.resize(static_cast<std::size_t>(capacity));
    }
  }
}

}  // namespace

ClusterStep cluster_step(const HostEntries& entries, Index g, Index i, std::int32_t first, std::int32_t last) {
  std::vector<std::int32_t> groups;
  entries.each(g, i, first, last, [&](std::int32_t, std::size_t table, std::size_t slot) {
    const std::int32_t group = entries.group(table, slot);
    if (group >= 0) groups.push_back(group);
  });
  std::ranges::sort(groups);
  ClusterStep step;
  for (const std::int32_t group : groups) {
    if (step.clusters.empty() || step.clusters.back().cluster != group) step.clusters.push_back({group, 0});
    ++step.clusters.back().tokens;
  }
  return step;
}

std::vector<CacheHits> cache_hits(std::span<const ClusterStep> steps, Index window) {
  std::vector<CacheHits> hits(steps.size(), {nan, nan, nan});
  for (std::size_t begin = 0; begin < steps.size();) {
    std::size_t end = begin + 1;
    while (end < steps.size() && steps[end].position == steps[end - 1].position + 1) ++end;
    const Run run(steps.subspan(begin, end - begin));
    const std::span<CacheHits> of_run = std::span(hits).subspan(begin, end - begin);
    simulate_belady(run, window, simulate_window(run, window, of_run), of_run);
    begin = end;
  }
  return hits;
}

void set_cache_hits(std::span<const ClusterStep> steps, std::span<MetricRow> rows) {
  struct Metrics {
    Index window;
    Metric tokens, clusters, belady;
  };
  constexpr std::array all = {
      Metrics{1, Metric::cache_hit_r1, Metric::cache_hit_r1_clusters, Metric::cache_hit_r1_belady},
      Metrics{2, Metric::cache_hit_r2, Metric::cache_hit_r2_clusters, Metric::cache_hit_r2_belady},
      Metrics{4, Metric::cache_hit_r4, Metric::cache_hit_r4_clusters, Metric::cache_hit_r4_belady},
  };
  for (const Metrics& metrics : all) {
    const auto set = [&](MetricRow& row, const CacheHits& hits) {
      row[static_cast<std::size_t>(metrics.tokens)] = static_cast<float>(hits.tokens);
      row[static_cast<std::size_t>(metrics.clusters)] = static_cast<float>(hits.clusters);
      row[static_cast<std::size_t>(metrics.belady)] = static_cast<float>(hits.belady);
    };
    for (MetricRow& row : rows) set(row, {nan, nan, nan});
    const std::vector<CacheHits> hits = cache_hits(steps, metrics.window);
    for (std::size_t s = 0; s < steps.size(); ++s) set(rows[static_cast<std::size_t>(steps[s].query)], hits[s]);
  }
}

}  // namespace kvbench
