// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/retrieval/infinigen_reach.hpp>

#include <algorithm>
#include <map>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

/// Number of tokens above the threshold of each query, averaged over all heads of the layer.
std::vector<double> mean_counts(const std::vector<SpeculatedScores>& heads, const std::vector<Reach>& reach,
                                Index tokens, const InfinigenParams& params, Backend& backend) {
  const auto m = std::ssize(reach);
  std::vector<double> counts(reach.size());
  std::vector<float> head_zero(reach.size());
  Index rows = 0;
  for (const auto& [scores, scale] : heads) {
    const HostView<float> host = backend.on_host(scores);
    for (Index r = 0; r < scores.rows(); ++r, ++rows) {
      const auto i = static_cast<std::size_t>(r % m);
      const auto row =
          std::span(host).subspan(static_cast<std::size_t>(r * tokens), static_cast<std::size_t>(reach[i].candidates));
      if (row.empty()) continue;
      float largest = scale * *std::ranges::max_element(row);
      if (rows < m) head_zero[i] = largest;
      if (params.threshold == InfinigenParams::Threshold::head_zero) largest = head_zero[i];
      const double least = largest - params.alpha;
      counts[i] += static_cast<double>(
          std::ranges::count_if(row, [factor = scale, least](float x) { return factor * x >= least; }));
    }
  }
  const Index passes = rows / m;
  for (double& count : counts) count /= static_cast<double>(passes);
  return counts;
}

/// The best tokens of each row by `scores`; one top-k per number of tokens that occurs.
std::vector<std::vector<TokenId>> choose(const Buffer<const float>& scores, const std::vector<Reach>& reach,
                                         Backend& backend) {
  const auto reach_of_row = [&](Index row) { return reach[static_cast<std::size_t>(row % std::ssize(reach))]; };
  std::map<Index, std::vector<std::int32_t>> rows_by_count;
  for (Index r = 0; r < scores.rows(); ++r)
    rows_by_count[reach_of_row(r).fetched].push_back(static_cast<std::int32_t>(r));
  std::vector<std::vector<TokenId>> chosen(static_cast<std::size_t>(scores.rows()));
  for (const auto& [k, rows] : rows_by_count) {
    if (k == 0) continue;
    const Index count = std::ssize(rows);
    std::vector<std::int32_t> last;
    for (const std::int32_t r : rows) last.push_back(static_cast<std::int32_t>(reach_of_row(r).candidates));
    const auto best = backend.allocate<std::int32_t>(count, k);
    backend.run(kernels::TopK<Buffer>{.scores = count == scores.rows() ? scores : gathered(scores, rows, backend),
                                      .first = backend.adopt(std::vector<std::int32_t>(rows.size()), count),
                                      .last = backend.adopt(std::move(last), count),
                                      .ids = best});
    const std::vector<std::int32_t> ids = backend.read(best);
    for (Index r = 0; r < count; ++r) {
      chosen[static_cast<std::size_t>(rows[static_cast<std::size_t>(r)])].assign(ids.begin() + r * k,
                                                                                 ids.begin() + (r + 1) * k);
    }
  }
  return chosen;
}

}  // namespace

std::vector<Reach> reach_of(const QueryBlock& block, const std::vector<SpeculatedScores>& heads, Index tokens,
                            Index budget, const InfinigenParams& params, Backend& backend) {
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

EntryTable fetched_tokens(const Buffer<const float>& scores, const std::vector<Reach>& reach, Backend& backend) {
  const std::vector<std::vector<TokenId>> chosen = choose(scores, reach, backend);
  Index width = 0;
  for (const Reach& r : reach) width = std::max(width, r.fetched + r.own);
  std::vector<TokenId> ids(chosen.size() * static_cast<std::size_t>(width), -1);
  for (std::size_t r = 0; r < chosen.size(); ++r) {
    const Reach& of_query = reach[r % reach.size()];
    auto slot = std::ranges::copy(chosen[r], ids.begin() + static_cast<Index>(r) * width).out;
    if (of_query.own) *slot = static_cast<TokenId>(of_query.candidates);
  }
  return {.per_query = true, .ids = backend.adopt(std::move(ids), scores.rows(), width)};
}

}  // namespace kvbench::methods
