// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <kvbench/replay/exact/head.hpp>
#include <kvbench/replay/metrics/answered.hpp>

namespace kvbench::replay {

/// How far the exact pass of one kv head is from exact attention. The exact pass cannot tell, nor can an answer that
/// reuses its logits or its mask; therefore a sample of the queries is computed again in fp64 on the host. Used by one
/// thread at a time.
class NoiseFloor {
 public:
  /// Queries of each query head that are computed again.
  static constexpr Index sample_size = 16;

  /// The scale and the tokens that a query sees are those of the trace's `layer`, not those that the exact pass used.
  /// `head` must outlive this object.
  NoiseFloor(const Head& head, const trace::LayerInfo& layer)
      : head_(&head), scale_(layer.scale), window_(layer.window), rows_(head.positions.size()) {}

  /// Whether the query of this number among those of the head is in the sample, which is evenly spaced and holds the
  /// last query; all queries where there are at most `sample_size`.
  bool samples(Index query) const;

  /// Exact attention of query head g at a query of the sample, as a state with denominator 1. The output is rounded to
  /// fp32. Configurations share it: it is computed at the first call.
  RowState row(Index g, Index query, Backend& backend);

 private:
  struct Row {
    double log_sum_exp = 0;
    std::vector<float> out;  // [dv]
  };

  Row compute(Index g, Index query) const;

  const Head* head_;
  double scale_;
  Index window_;
  HostView<float> keys_, values_;       // empty before the first row
  std::vector<std::vector<Row>> rows_;  // by query and query head; empty: not computed yet
};

}  // namespace kvbench::replay
