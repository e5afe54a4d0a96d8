// SPDX-License-Identifier: Apache-2.0
// One kv head in memory: the data of the harness, and the part that a method sees.
#pragma once

#include <kvbench/replay/exact/token_map.hpp>
#include <kvbench/replay/plan/plan.hpp>

namespace kvbench::replay {

/// The gradients that a trace records for the scored tokens of a kv head (trace::Probes).
struct HeadProbes {
  Index count = 0;               ///< R
  Index first = 0, tokens = 0;   ///< the scored tokens among the evaluated queries
  std::vector<float> gradients;  ///< [G, tokens, R, dv], nats per unit of output

  /// Into how many runs of about equal length scored tokens are cut, where damages are compared by piece.
  static constexpr Index pieces = 8;
  /// The piece in which a scored query is.
  Index piece_of(Index query) const { return (query - first) * pieces / tokens; }

  /// The gradients [R, dv] at an evaluated query of query head g; empty for a query that is not scored.
  std::span<const float> at(Index g, Index query, Index dv) const {
    if (query < first || query >= first + tokens) return {};
    const Index row = (g * tokens + query - first) * count * dv;
    return std::span(gradients).subspan(static_cast<std::size_t>(row), static_cast<std::size_t>(count * dv));
  }
};

/// What is known of the output projection W_O of a kv head and of the residual stream before it.
struct HeadSketch {
  Index columns = 0;          ///< s; 0: none
  std::vector<float> matrix;  ///< [G, dv, s]: a sketch of W_O, or from a model that runs W_O itself
  std::vector<float> norms;   ///< [m] of the residual stream at the evaluated queries; empty: errors are not projected

  /// Numbers of a projected error.
  Index projected() const { return norms.empty() ? 0 : columns; }

  /// The sketch of query head g, [dv, s].
  const float* of(Index g, Index dv) const { return matrix.data() + g * dv * columns; }
};

struct Head {
  HeadPlace place;
  Index group = 1;
  Index window = 0;            ///< sliding window of the layer, 0 = none
  methods::HeadTokens tokens;  ///< all tokens of the prompt
  TokenMap map;
  methods::HeadPrompt prompt;           ///< the method's view of the context
  std::vector<std::int32_t> positions;  ///< [m] of the queries to evaluate
  std::vector<float> queries;           ///< [G*m, d] row g*m + i
  std::vector<float> speculated;        ///< the same, empty where the trace has none
  std::vector<double> v_op, v_fro;      ///< [m] operator and Frobenius norm of V over the visible tokens of each query
  HeadProbes probes;                    ///< count = 0: none
  HeadSketch sketch;                    ///< columns = 0: none

  Index num_tokens() const { return tokens.keys.rows(); }
  /// The first visible token of a query at this position.
  Index first_seen(std::int32_t position) const { return first_seen_by(position, window); }
  Index queries_per_head() const { return static_cast<Index>(positions.size()); }
};

/// The arrays of one kv head that a replay needs, read from the trace for a backend.
struct HeadSlabs {
  Uploaded<float> keys, values;            ///< [n, d], [n, dv]
  Uploaded<float> keys_pre_rope;           ///< [n, d]; absent: not in the trace
  Uploaded<float> column_sums;             ///< [G, middle]; absent: the trace has none for this context
  Uploaded<float> observed;                ///< as HeadPrompt::observed
  std::vector<float> queries, speculated;  ///< as in Head
  std::vector<double> v_op, v_fro;         ///< as in Head
  HeadProbes probes;                       ///< as in Head
  HeadSketch sketch;                       ///< as in Head
};

/// Bytes that read_head() leaves in the uploader's memory.
std::size_t slab_bytes(const trace::TraceInfo& info, const HeadPlace& place);

/// Indices into the layer's query_positions: the queries that a method may see, and those to evaluate.
struct QueryRange {
  std::size_t first = 0;  ///< earlier queries attend to no token of the method's context
  std::size_t split = 0;  ///< [first, split) are observed, [split, end) evaluated
  std::size_t end = 0;
};
QueryRange query_range(const trace::LayerInfo& layer, const PromptPlan& plan);

/// The number of scored tokens of which the prompt has probes, where a replay evaluates all of them; otherwise 0.
Index scored_tokens(const trace::PromptInfo& prompt, const PromptPlan& plan);

/// Sets v_op and v_fro from the values [n, dv] of a head.
void measure_values(std::span<const float> values, Index dv, const trace::LayerInfo& layer, const QueryRange& range,
                    HeadSlabs& slabs);

/// Reads one head. Throws Error as Reader::read_head() and check_logits() do. May be called from any thread while
/// backends compute. Holds at most one array in the trace's element type at a time.
HeadSlabs read_head(const trace::Reader& reader, const PromptPlan& plan, const HeadPlace& place, Uploader& uploader);

/// Moves a head that was read to the backend that computes it.
Head place_head(const trace::TraceInfo& info, const PromptPlan& plan, const HeadPlace& place, HeadSlabs slabs,
                Backend& backend);

/// read_head() and place_head().
Head load_head(const trace::Reader& reader, const PromptPlan& plan, const HeadPlace& place, Backend& backend);

/// A kv head of the calibration text, with all its tokens as context and all recorded queries observed. Throws Error
/// where the text lacks the layer.
std::shared_ptr<const methods::HeadPrompt> load_calibration(const Calibration& calibration, std::int64_t layer,
                                                            Index kv_head, Backend& backend);

}  // namespace kvbench::replay
