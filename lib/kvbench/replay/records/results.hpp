// SPDX-License-Identifier: Apache-2.0
// The measurements of a replay, before they are summarised and formatted, and metrics of the heads of a layer together.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/core/budget.hpp>
#include <kvbench/methods/contract/host_table.hpp>
#include <kvbench/replay/metrics/metric.hpp>
#include <kvbench/replay/plan/configuration.hpp>
#include <kvbench/trace/schema.hpp>

namespace kvbench::replay {

/// Of a configuration or a pass; one that is not ok has ended before its results were complete.
enum class Status { ok, skipped, failed, infeasible };
std::string_view name_of(Status status);

struct Bytes {
  double kv = 0, meta = 0, fast = 0, slow = 0, read = 0, full = 0;

  /// memory: kv + meta. fast, read: these fields.
  double of(CostKind cost) const;
  Bytes& operator+=(const Bytes& other);
};

/// The raw results of a configuration on one kv head.
struct RawResult {
  std::vector<float> output;  ///< [G * m, dv] row g*m + i
  std::vector<float> exact;   ///< the same of exact attention; empty unless RunOptions::keep_exact
  Index entries_query = 0;    ///< index of the first query that `entries` answered; they cover the last part of the run
  std::vector<methods::HostTable> entries;  ///< in the trace's token numbers
};

/// The result of one configuration on one kv head.
struct ConfigurationResult {
  Status status = Status::ok;
  std::string reason;
  std::vector<methods::Note> notes;  ///< of status ok; for a method that sees the layer, at its first head
  bool dense = false;                ///< the layer is kept whole: by dense_layers, or because methods do not run in it
  Index budget_tokens = 0;           ///< the budget in tokens, protected tokens included
  double kept_tokens = 0;  ///< entries that answer a query, mean over queries and query heads, exact tail excluded
  Bytes bytes;             ///< at the end of the run
  double peak_bytes = 0;   ///< backend memory taken while compressing, beyond the trace's own arrays
  double compress_flops = 0, attend_flops = 0;
  double compress_s = 0, attend_s = 0, exact_s = 0;
  std::vector<MetricRow> metrics;  ///< [G * m] row g*m + i
  std::optional<RawResult> raw;    ///< present where RunOptions::keep_raw
  /// [R] of each probe of the trace: the sum over the query heads and scored tokens of the inner products of its
  /// gradients with the errors of the outputs, in nats; empty: no probes
  std::vector<double> probe_sums;
  std::vector<double> piece_sums;  ///< [HeadProbes::pieces, R] of the scored tokens of each piece; not stored
  /// [m, 2, s] of the evaluated queries: S' (z - z*) / |x| and S' z* / |x| of the query heads of this kv head, added
  /// up, with the sketch S of W_O and the residual stream x of the trace; NaN where a query is not measured. Empty: the
  /// trace has none, or set_layer_metrics() has used it
  std::vector<float> residual;
  std::vector<float> rel_err_fro;  ///< [G] Frobenius norm of the differences over that of the exact outputs
  /// Tokens of the context that the cache holds when the last query is answered: bit t % 64 of number t / 64. Empty:
  /// the text has no spans, or the method merges tokens or chooses among all of them for each query
  std::vector<std::uint64_t> held;
  bool sinks_recalled = false;  ///< ReplayRequest::recall_sinks changes its recall; not stored in cells
};

struct HeadResult {
  HeadPlace place;
  std::int64_t layer = 0;                    ///< number of the layer in the model
  std::vector<std::int32_t> positions;       ///< [m] of the queries evaluated
  std::vector<ConfigurationResult> results;  ///< one per element of ReplayFrame::configurations
  bool windowed = false;                     ///< the layer has a sliding window
};

/// The inputs of a replay that rows report with their figures. Neither the trace nor the registry is needed to read it.
struct ReplayFrame {
  struct Prompt {
    std::string id;
    Protocol protocol = Protocol::automatic;  ///< resolved, where the prompt is replayed
    Index context_tokens = 0;  ///< tokens that budgets refer to (budget_base()), where the prompt is replayed
    Index scored_tokens = 0;   ///< tokens of which the trace has probes that the replay evaluates; 0: none
    /// Those of the trace, where the replay evaluates its scored tokens: `method` as rows name it, `budget` empty where
    /// the method has one size
    std::vector<trace::Anchor> anchors = {};
    bool anchored = false;                ///< rows of these configurations are what the anchors measured
    std::string name = {};                ///< of its text, for display; may be empty
    std::vector<trace::Span> spans = {};  ///< of its context, as it is replayed
  };
  struct Method {
    std::string name, params;
    bool seeded = false;
  };
  std::string trace, sha256, model;  ///< name of the file without its folders, whole digest
  std::string rope_layout;           ///< TraceInfo::channel_order()
  std::int64_t model_layers = 0;     ///< TraceInfo::layers_behind() the replayed ones
  Index group = 1;                   ///< query heads per kv head
  std::vector<Prompt> prompts;       ///< by HeadPlace::prompt
  std::vector<Method> methods;       ///< by Configuration::method
  std::vector<Budget> budgets;       ///< by Configuration::budget
  std::vector<Configuration> configurations;
  std::string device, isa;
  bool standalone = false;  ///< every configuration was computed alone
  FigureNumber rank_by{};
};

struct ReplayResults : ReplayFrame {
  std::vector<HeadResult> heads;  ///< in plan order
};

/// Sets residual_err and stream_err of each query of a layer from the parts of its kv heads
/// (ConfigurationResult::residual), in the metrics of its first query head, and frees the parts. The other heads keep
/// NaN, so that a query counts once. Where a replay has some of the heads of a layer, it is the error of compressing
/// these alone; without a result of one of them, NaN. The heads of a layer must be adjacent.
void set_layer_metrics(std::span<HeadResult> heads);

}  // namespace kvbench::replay
