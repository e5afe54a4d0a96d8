// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/infinigen_reach.hpp>

#include <algorithm>

namespace kvbench {
namespace {

/// Tokens above the threshold of each query, averaged over all heads of the layer.
std::vector<double> mean_counts(const std::vector<SpeculatedScores>& heads, const std::vector<Reach>& reach, Index tokens,
                                const InfinigenParams& params, Backend& backend) {
  const auto m = std::ssize(reach);
  std::vector<double> counts(reach.size());
  std::vector<float> head_zero(reach.size());
  Index rows = 0;
  for (const auto& [scores, scale] : heads) {
    const std::vector<float> host = backend.read(scores);
    for (Index r = 0; r < scores.rows(); ++r, ++rows) {
      const auto i = static_cast<std::size_t>(r % m);
      const auto row =
          std::span(host).subspan(static_cast<std::size_t>(r * tokens), static_cast<std::size_t>(reach[i].candidates));
      if (row.empty()) continue;
      float largest = scale * *std::ranges::max_element(row);
      if (rows < m) head_zero[i] = largest;
      if (params.threshold == InfinigenParams::Threshold::head_zero) largest = head_zero[i];
      const double least = largest - params.alpha;
      counts[i] +=
          static_cast<double>(std::ranges::count_if(row, [factor = scale, least](float x) { return factor * x >= least; }));
    }
  }
  for (double& count : counts) count /= static_cast<double>(rows / m);
  return counts;
}

}  // namespace

std::vector<Reach> reach_of(const QueryBlock& block, const std::vector<SpeculatedScores>& heads, Index tokens, Index budget,
                            const InfinigenParams& params, Backend& backend) {
  std::vector<Reach> reach;
  for (const std::int32_t last : backend.read(block.last)) {
    const bool own = last <= tokens;
    const Index candidates = own ? last - 1 : tokens;
    reach.push_back({candidates, own, std::min(budget - own, candidates)});
  }
  if (params.fetch == InfinigenParams::Fetch::fixed) return reach;
  const std::vector<double> mean = mean_counts(heads, reach, tokens, params, backend);
  for (std::size_t i = 0; i < reach.size(); ++i) {
    Reach& r = reach[i];
    const auto cap = static_cast<Index>(params.max_share * static_cast<double>(r.candidates + r.own));
    r.fetched = std::min({r.fetched, static_cast<Index>(mean[i]), std::max<Index>(cap, r.own ? 0 : 1)});
  }
  return reach;
}

bool fetch_alike(const std::vector<Reach>& reach, Index budget, const InfinigenParams& params) {
  return params.fetch == InfinigenParams::Fetch::fixed && std::ranges::all_of(reach, [&](const Reach& r) {
           return r.own == reach.front().own && r.candidates >= budget - r.own;
         });
}

}  // namespace kvbench
