// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/cluster_index.hpp>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include <kvbench/methods/stages.hpp>

namespace kvbench {

void ClusterIndex::add(const Clustering& clustering, Index first, Backend& backend) {
  const Index old = clusters(), added = clustering.centroids.rows();
  const auto all = backend.allocate<float>(old + added, d_);
  copy_rows(centroids_, all.slice(0, old), backend);
  copy_rows(clustering.centroids, all.slice(old, added), backend);
  centroids_ = all;

  // A counting sort by label keeps the tokens of a cluster in increasing order.
  std::vector<Index> next(static_cast<std::size_t>(added), 0);
  for (const std::int32_t label : clustering.labels) ++next[static_cast<std::size_t>(label)];
  for (Index& count : next) {
    const Index begin = begin_.back();
    begin_.push_back(begin + count);
    count = begin;
  }
  members_.resize(static_cast<std::size_t>(begin_.back()));
  for (std::size_t i = 0; i < clustering.labels.size(); ++i) {
    Index& slot = next[static_cast<std::size_t>(clustering.labels[i])];
    members_[static_cast<std::size_t>(slot++)] = static_cast<TokenId>(first + static_cast<Index>(i));
  }
}

/// Clusters in falling order of score, until they hold `budget` tokens together.
std::vector<std::int32_t> ClusterIndex::best(std::span<const float> scores, Index budget) const {
  const auto lower = [&](std::int32_t a, std::int32_t b) {
    const float x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
    return x != y ? x < y : a > b;
  };
  std::vector<std::int32_t> heap = token_range(0, clusters()), chosen;
  std::ranges::make_heap(heap, lower);
  for (Index taken = 0; taken < budget && !heap.empty(); heap.pop_back()) {
    std::ranges::pop_heap(heap, lower);
    if (size(heap.back()) == 0) continue;
    chosen.push_back(heap.back());
    taken += size(heap.back());
  }
  return chosen;
}

/// One row for each list of clusters; a list that holds more than `budget` tokens is cut there.
EntryTable ClusterIndex::table(const std::vector<Clusters>& chosen, Index budget, Backend& backend) const {
  Index width = 0;
  for (const auto& row : chosen) {
    const Index held = std::accumulate(row.begin(), row.end(), Index{0}, [&](Index sum, auto c) { return sum + size(c); });
    width = std::max(width, std::min(held, budget));
  }
  const auto rows = static_cast<Index>(chosen.size());
  std::vector<TokenId> ids(static_cast<std::size_t>(rows * width), -1);
  std::vector<std::int32_t> groups(ids.size(), -1);
  for (Index r = 0; r < rows; ++r) {
    Index slot = r * width;
    const Index end = slot + width;
    for (const std::int32_t cluster : chosen[static_cast<std::size_t>(r)]) {
      const Index count = std::min(size(cluster), end - slot);
      std::copy_n(members_.begin() + begin_[static_cast<std::size_t>(cluster)], count, ids.begin() + slot);
      std::fill_n(groups.begin() + slot, count, cluster);
      slot += count;
    }
  }
  return {.per_query = true,
          .ids = backend.adopt(std::move(ids), rows, width),
          .groups = backend.adopt(std::move(groups), rows, width)};
}

std::vector<ClusterIndex::Clusters> ClusterIndex::ranked(const QueryBlock& queries, Index budget, const GroupChoice& choice,
                                                         Backend& backend) const {
  const auto products = inner_products(queries.queries, centroids_, backend);
  const Buffer<const float> scores = group_scores(products, queries.size(), choice, backend);
  const std::vector<float> host = backend.read(scores);
  const auto count = static_cast<std::size_t>(clusters());
  std::vector<Clusters> chosen;
  for (Index r = 0; r < scores.rows(); ++r) {
    chosen.push_back(best(std::span(host).subspan(static_cast<std::size_t>(r) * count, count), budget));
  }
  return chosen;
}

EntryTable ClusterIndex::select(const QueryBlock& queries, Index budget, Fill fill, const GroupChoice& choice,
                                Backend& backend) const {
  struct OfLargestBudget {
    std::vector<Clusters> chosen;
  };
  const auto compute = [&] { return OfLargestBudget{ranked(queries, budget, choice, backend)}; };
  std::vector<Clusters> chosen =
      queries.memo == nullptr ? compute().chosen : queries.memo->get<OfLargestBudget>(backend, compute).chosen;
  for (Clusters& row : chosen) {
    Index taken = 0;
    row.erase(std::ranges::find_if(row, [&](std::int32_t c) { return std::exchange(taken, taken + size(c)) >= budget; }),
              row.end());
  }
  EntryTable entries = table(chosen, fill == Fill::trim ? budget : std::numeric_limits<Index>::max(), backend);
  entries.per_head = choice.per_head();
  return entries;
}

}  // namespace kvbench
