// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/cluster_index.hpp>

#include <algorithm>
#include <optional>

#include <kvbench/methods/stages/stages.hpp>

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

Index ClusterIndex::taken(const Clusters& row, Index budget, Fill fill) const {
  Index held = 0;
  for (auto cluster = row.begin(); cluster != row.end() && held < budget; ++cluster) held += size(*cluster);
  return fill == Fill::trim ? std::min(held, budget) : held;
}

EntryTable ClusterIndex::table(const std::vector<Clusters>& chosen, const std::vector<Index>& from,
                               const std::vector<Index>& to, Backend& backend) const {
  Index width = 0;
  for (std::size_t r = 0; r < chosen.size(); ++r) width = std::max(width, to[r] - from[r]);
  const auto rows = static_cast<Index>(chosen.size());
  std::vector<TokenId> ids(static_cast<std::size_t>(rows * width), -1);
  std::vector<std::int32_t> groups(ids.size(), -1);
  for (std::size_t r = 0; r < chosen.size(); ++r) {
    Index slot = static_cast<Index>(r) * width, begin = 0;  // tokens of the clusters before the one at hand
    for (const std::int32_t cluster : chosen[r]) {
      const Index end = begin + size(cluster), first = std::max(begin, from[r]), count = std::min(end, to[r]) - first;
      if (count > 0) {
        std::copy_n(members_.begin() + begin_[static_cast<std::size_t>(cluster)] + first - begin, count, ids.begin() + slot);
        std::fill_n(groups.begin() + slot, count, cluster);
        slot += count;
      }
      begin = end;
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

std::vector<EntryTable> ClusterIndex::select(const QueryBlock& queries, std::span<const Index> budgets, Fill fill,
                                             const GroupChoice& choice, Backend& backend) const {
  struct OfLargestBudget {
    std::vector<Clusters> chosen;
  };
  std::optional<OfLargestBudget> own;
  const auto compute = [&] { return OfLargestBudget{ranked(queries, budgets.front(), choice, backend)}; };
  const std::vector<Clusters>& chosen =
      queries.memo == nullptr ? own.emplace(compute()).chosen : queries.memo->get<OfLargestBudget>(backend, compute).chosen;
  std::vector<std::vector<Index>> ends;  // by level, by row
  for (const Index budget : budgets) {
    std::vector<Index>& end = ends.emplace_back();
    for (const Clusters& row : chosen) end.push_back(taken(row, budget, fill));
  }
  ends.emplace_back(chosen.size(), 0);
  std::vector<EntryTable> tables;
  for (std::size_t s = 0; s < budgets.size(); ++s) {
    tables.push_back(table(chosen, ends[s + 1], ends[s], backend));
    tables.back().per_head = choice.per_head();
  }
  return tables;
}

}  // namespace kvbench
