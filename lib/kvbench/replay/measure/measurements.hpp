// SPDX-License-Identifier: Apache-2.0
// The measurements of one configuration on one kv head: its answers are compared with the exact outputs per query.
// Differences are formed and summed in fp64.
#pragma once

#include <optional>
#include <vector>

#include <kvbench/replay/exact/head.hpp>
#include <kvbench/replay/measure/cluster_cache.hpp>
#include <kvbench/replay/measure/mass_ceiling.hpp>
#include <kvbench/replay/measure/recall.hpp>
#include <kvbench/replay/metrics/answered.hpp>

namespace kvbench::replay {

/// `plain`: the state over H only, the entries with their own token's key and value and unit weights.
SquaredNorms squared_norms(const RowTruth& truth, const RowState& answer, const RowState& plain);

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

using methods::HostState;

/// The answer of a configuration over all its entries, and over its plain entries only (their token's key and value,
/// unit weights).
struct Answer {
  HostState all, plain;
};

/// Queries [begin, end) of a block.
struct QueryRun {
  Index begin = 0, end = 0;
  Index size() const { return end - begin; }
  friend auto operator<=>(const QueryRun&, const QueryRun&) = default;
};

class Measurements {
 public:
  struct Options {
    bool keep_outputs = false;  ///< also store the outputs
    bool keep_exact = false;    ///< and the exact ones
    /// With it, the metrics say how far the exact pass is from it, whatever the answers are, and queries outside its
    /// sample have none (NaN).
    NoiseFloor* floor = nullptr;
    ContextMass* mass = nullptr;  ///< absent: no mass_ceiling
    Index first_measured = 0;     ///< earlier queries of each query head have no metrics (NaN)
  };

  /// Stores into `result`, which must outlive this object, as must `head` and what the options refer to.
  Measurements(const Head& head, const Options& options, ConfigurationResult& result);

  /// Measures the answers that `entries` gave to the queries of `run`. Rows of `answer`: g*run.size() + i.
  void add(ExactBlock& exact, QueryRun run, const HostEntries& entries, const RecallRange& recall, const Answer& answer,
           Backend& backend);

  /// Counts the entries of the run, without an answer.
  void count(const ExactBlock& exact, QueryRun run, const HostEntries& entries);

  /// Call after the last query. `cached`: tokens that the exact cache would hold.
  void finish(const methods::Footprint& footprint, methods::Element kv_element, Index cached);

 private:
  void add_row(ExactBlock& exact, QueryRun run, const HostEntries& entries, const RecallRange& recall,
               const Answer& answer, Index g, Index i, Backend& backend);
  void measure(const Answered& answered, Index g, std::size_t row);
  void set_mass_ceiling();
  void add_probes(const RowTruth& truth, const RowState& answer, Index g, Index query);
  void add_residual(const Answered& answered, Index g, Index query);
  void store_outputs(const RowTruth& truth, const RowState& answer, std::size_t row);
  void count_entries(const ExactBlock& exact, QueryRun run, const HostEntries& entries, Index g, Index i);
  std::size_t row_of(const ExactBlock& exact, QueryRun run, Index g, Index i) const {
    return static_cast<std::size_t>(g * head_->queries_per_head() + exact.begin + run.begin + i);
  }

  const Head* head_;
  ConfigurationResult* result_;
  Options options_;
  ShrinkingSets sets_;
  double entries_ = 0;    ///< entries that answered, summed over query rows
  double rows_read_ = 0;  ///< rows of arrays with Read::with_entry, summed over queries
  double query_rows_ = 0;
  std::vector<SquaredNorms> squares_;            ///< by query head; difference and exact
  std::vector<std::vector<ClusterStep>> steps_;  ///< by query head, in query order; none where entries have no clusters
};

}  // namespace kvbench::replay
