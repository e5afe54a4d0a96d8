// SPDX-License-Identifier: Apache-2.0
// The number of tokens that each query of a block fetches in InfiniGen, and their selection where the numbers differ
// (infinigen.hpp: fetch, alpha, max_share, threshold).
#pragma once

#include <vector>

#include <kvbench/methods/retrieval/infinigen.hpp>

namespace kvbench::methods {

/// The tokens that a query may fetch: [0, candidates), and its own token where the cache holds it.
struct Reach {
  Index candidates = 0;
  bool own = false;
  Index fetched = 0;  ///< number of candidates that are fetched
};

/// Speculated scores of one kv head, without their scale: [G*m or m, tokens].
struct SpeculatedScores {
  Buffer<const float> scores;
  float scale = 1;
};

/// The reach of each query of the block, the same for all kv heads of the layer. `heads` [kv heads]; `tokens` = tokens
/// in the cache.
std::vector<Reach> reach_of(const QueryBlock& block, const std::vector<SpeculatedScores>& heads, Index tokens,
                            Index budget, const InfinigenParams& params, Backend& backend);

/// For each row of `scores` (g*m + i, or i): the tokens with the highest scores, as many as the query fetches, and the
/// query's own token.
EntryTable fetched_tokens(const Buffer<const float>& scores, const std::vector<Reach>& reach, Backend& backend);

}  // namespace kvbench::methods
