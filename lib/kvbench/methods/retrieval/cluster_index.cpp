// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/cluster_index.hpp>

#include <algorithm>
#include <span>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {

void ClusterIndex::add(const Clustering& clustering, Index first, Backend& backend) {
  const Index old = clusters(), added = clustering.centroids.rows();
  const auto all = backend.allocate<float>(old + added, d_);
  copy_rows(centroids_, all.slice(0, old), backend);
  copy_rows(clustering.centroids, all.slice(old, added), backend);
  centroids_ = all;

  // A counting sort by label leaves the tokens of each cluster in increasing order.
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

ClusterIndex::Clusters ClusterIndex::best(std::span<const float> scores, Index budget) const {
  const auto lower = [&](std::int32_t a, std::int32_t b) {
    const float x = scores[static_cast<std::size_t>(a)], y = scores[static_cast<std::size_t>(b)];
    return x != y ? x < y : a > b;
  };
  Clusters heap = token_range(0, clusters()), chosen;
  std::ranges::make_heap(heap, lower);
  for (Index taken = 0; taken < budget && !heap.empty(); heap.pop_back()) {
    std::ranges::pop_heap(heap, lower);
    if (size(heap.back()) == 0) continue;
    chosen.push_back(heap.back());
    taken += size(heap.back());
  }
  return chosen;
}

Index ClusterIndex::taken(const Clusters& clusters, Index budget, Fill fill) const {
  Index held = 0;
  for (const std::int32_t cluster : clusters) held += size(cluster);
  return fill == Fill::trim ? std::min(held, budget) : held;
}

EntryTable ClusterIndex::select(const QueryBlock& queries, Index budget, Fill fill, const GroupChoice& choice,
                                Backend& backend) const {
  const auto products = inner_products(queries.queries, centroids_, backend);
  const Buffer<const float> scores = group_scores(products, queries.size(), choice, backend);
  const std::vector<float> host = backend.read(scores);
  const auto count = static_cast<std::size_t>(clusters());
  const Index rows = scores.rows();
  std::vector<Clusters> chosen;
  std::vector<Index> ends;
  for (Index r = 0; r < rows; ++r) {
    chosen.push_back(best(std::span(host).subspan(static_cast<std::size_t>(r) * count, count), budget));
    ends.push_back(taken(chosen.back(), budget, fill));
  }
  const Index width = rows == 0 ? 0 : *std::ranges::max_element(ends);
  std::vector<TokenId> ids(static_cast<std::size_t>(rows * width), -1);
  std::vector<std::int32_t> cluster_ids(ids.size(), -1);
  for (Index r = 0; r < rows; ++r) {
    Index slot = r * width, left = ends[static_cast<std::size_t>(r)];
    for (const std::int32_t cluster : chosen[static_cast<std::size_t>(r)]) {
      const Index tokens = std::min(size(cluster), left);
      std::copy_n(members_.begin() + begin_[static_cast<std::size_t>(cluster)], tokens, ids.begin() + slot);
      std::fill_n(cluster_ids.begin() + slot, tokens, cluster);
      slot += tokens;
      left -= tokens;
    }
  }
  return {.per_head = choice.per_head(),
          .per_query = true,
          .ids = backend.adopt(std::move(ids), rows, width),
          .cluster_ids = backend.adopt(std::move(cluster_ids), rows, width)};
}

}  // namespace kvbench::methods
