// SPDX-License-Identifier: Apache-2.0
// How many tokens the queries of a block fetch in InfiniGen, and which where the numbers differ (infinigen.hpp: fetch, alpha,
// max_share, threshold).
#pragma once

#include <functional>
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

/// Speculated scores of rows begin, ..., begin + count - 1, [count, tokens]. They are rows of one query head.
using RowScores = std::function<Buffer<const float>(Index begin, Index count)>;

/// The tokens of each of `rows` rows (g*m + i, or i): as many as its query fetches, those with the highest scores, and the query's own.
EntryTable fetched_tokens(Index rows, const RowScores& scores, const std::vector<Reach>& reach, Backend& backend);

}  // namespace kvbench
