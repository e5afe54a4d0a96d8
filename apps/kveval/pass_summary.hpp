// SPDX-License-Identifier: Apache-2.0
// What the layers of one pass add to the result of a configuration on a document. Needs no model.
#pragma once

#include <string>
#include <vector>

#include <kvbench/eval/results.hpp>
#include <kvbench/loop/layer_loop.hpp>

namespace kvbench::kveval {

class PassSummary {
 public:
  /// Of an answer of so many queries per query head, the last `scored` ones count in the errors. A layer that
  /// --dense-layers keeps whole counts in the bytes alone.
  void add(std::int64_t layer, const loop::LayerAnswer& answer, Index queries, Index scored);
  /// Of the layers added.
  const eval::Holders& holders() const { return holders_; }
  /// The layer stays exact, because the method cannot run on it.
  void skip(std::int64_t layer, const std::string& reason);
  /// Sets errors of layers, budgets, bytes and the reason; the status is `skipped` where no layer was compressed.
  /// Those of the `cached_layers` layers with a cache that were not answered hold it whole.
  void finish(std::int64_t cached_layers, eval::PassResult& result) const;

 private:
  replay::Bytes mean_bytes(std::int64_t cached_layers) const;

  std::vector<eval::LayerErrors> layers_;
  std::vector<methods::Note> notes_;
  std::vector<std::int64_t> skipped_;
  std::string why_skipped_;
  double answered_ = 0;                                     ///< layers, compressed or kept whole
  double heads_ = 0, budget_tokens_ = 0, kept_tokens_ = 0;  ///< of the layers that are compressed
  double kv_heads_ = 0;                                     ///< of a layer
  replay::Bytes bytes_;
  eval::Holders holders_;
};

/// The mean over the rows of |h - h_full| / |h_full|; NaN where there are no rows.
double mean_drift(const std::vector<float>& hidden, const std::vector<float>& full, Index rows);

}  // namespace kvbench::kveval
