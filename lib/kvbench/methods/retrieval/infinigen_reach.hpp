// SPDX-License-Identifier: Apache-2.0
// How many tokens the queries of a block fetch in InfiniGen, and which where the numbers differ (infinigen.hpp: fetch, alpha,
// max_share, threshold).
#pragma once

#include <vector>

#include <kvbench/methods/retrieval/infinigen.hpp>

namespace kvbench {

/// What a query may fetch: tokens [0, candidates), and its own where that is in the cache.
struct Reach {
  Index candidates = 0;
  bool own = false;
  Index fetched = 0;  ///< of the candidates
};

/// Speculated scores of one kv head, without their scale: [G*m or m, tokens].
struct SpeculatedScores {
  Buffer<const float> scores;
  float scale = 1;
};

/// By query of the block, the same for all kv heads of the layer, `heads`. `tokens` = those in the cache.
std::vector<Reach> reach_of(const QueryBlock& block, const std::vector<SpeculatedScores>& heads, Index tokens, Index budget,
                            const InfinigenParams& params, Backend& backend);

/// Whether all queries fetch as many tokens as this budget has, and as each smaller one has.
bool fetch_alike(const std::vector<Reach>& reach, Index budget, const InfinigenParams& params);

/// A row of tokens for each row of `scores` [G*m or m, tokens], as many as its query fetches, and the query's own.
EntryTable fetched_tokens(const QueryBlock& queries, const Buffer<const float>& scores, const std::vector<Reach>& reach,
                          Backend& backend);

}  // namespace kvbench
