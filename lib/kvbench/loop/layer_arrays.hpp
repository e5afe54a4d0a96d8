// SPDX-License-Identifier: Apache-2.0
// The arrays of one layer of a document, from a model that runs.
#pragma once

#include <span>

#include <kvbench/replay/exact/head.hpp>

namespace kvbench::loop {

/// The arrays of one layer, as a dump of the n + m tokens has them.
struct LayerArrays {
  std::span<const float> keys;          ///< [kv_heads, n + m, d]
  std::span<const float> values;        ///< [kv_heads, n + m, dv]
  std::span<const float> queries;       ///< [query_heads, query_positions, d]
  std::span<const float> speculated;    ///< as `queries`; empty where the layer has none
  std::span<const double> column_sums;  ///< [query_heads, n + m]; empty where the layer has none
  std::span<const float> output = {};   ///< [query_heads, dv, columns] W_O; empty where the layer has none
  /// [query_heads] learned sinks: logits without a token, which take part in each softmax; empty where there are none.
  /// The Decoder alone knows them.
  std::span<const float> sinks = {};
};

/// Throws Error where the arrays do not have the shapes that layer `layer` (index into PromptInfo::layers) of the
/// document has.
void check_arrays(const trace::TraceInfo& document, std::size_t layer, const LayerArrays& arrays);

/// The arrays of a kv head.
replay::HeadSlabs slabs_of(const trace::TraceInfo& document, const replay::PromptPlan& plan, std::size_t layer,
                           Index kv_head, const LayerArrays& arrays, Uploader& uploader);

}  // namespace kvbench::loop
