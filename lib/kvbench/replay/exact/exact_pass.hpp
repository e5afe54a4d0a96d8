// SPDX-License-Identifier: Apache-2.0
// The exact pass over a block of queries, computed once and shared by every method, budget, seed and metric.
#pragma once

#include <kvbench/replay/exact/head.hpp>
#include <kvbench/replay/exact/ranking.hpp>

namespace kvbench::replay {

/// Maximum bytes of the scores of a block, which limits the memory of a head beyond its slabs.
inline constexpr double score_bytes = 40e6;

/// The exact results of a block of consecutive evaluated queries of one kv head. Rows: g*m + i.
struct ExactBlock {
  Index begin = 0;            ///< index of its first query among the head's evaluated queries
  methods::QueryBlock block;  ///< in the trace's token numbers, scores kept
  std::vector<std::int32_t> visible_first,
      visible_last;                ///< [m] query i sees tokens visible_first[i] <= j < visible_last[i]
  std::vector<float> out;          ///< [R, dv] z*
  std::vector<float> log_sum_exp;  ///< [R] ln Z
  HostView<float> scores;          ///< [R, n] logits on the host
  HostView<float> shares;          ///< [R, n] softmax rows on the host
  std::vector<float> p_norm;       ///< [R] |p|_2 of the exact softmax row
  double seconds = 0;              ///< of the exact pass itself

  /// The k best tokens of a row by exact logit among columns [first, min(last, visible end)), which must contain at
  /// least k.
  BestTokens best(Backend& backend, Index k, Index first, Index last, Index row);

 private:
  Ranking ranking_;
};

/// Rows g*count + i of the queries [begin, begin + count), from the stacked rows g*m + i of `all`, of any width.
std::vector<float> query_rows(const std::vector<float>& all, Index group, Index m, Index begin, Index count);

/// The number of queries of a block whose scores fit into `bytes`.
Index block_queries(const Head& head, double bytes);

/// Throws Error with prompt, layer, query head and position where an output is not finite.
ExactBlock exact_block(const Head& head, Index begin, Index count, Backend& backend);

/// The queries [begin, begin + count) of a block.
methods::QueryBlock sub_block(const methods::QueryBlock& block, Index group, Index begin, Index count,
                              Backend& backend);

}  // namespace kvbench::replay
