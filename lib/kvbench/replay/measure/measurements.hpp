// SPDX-License-Identifier: Apache-2.0
// The measurements of one configuration on one kv head: its answers are compared with the exact outputs per query.
// Differences are formed and summed in fp64.
#pragma once

#include <optional>
#include <vector>

#include <kvbench/replay/measure/cluster_cache.hpp>
#include <kvbench/replay/measure/mass_ceiling.hpp>
#include <kvbench/replay/measure/noise_floor.hpp>
#include <kvbench/replay/metrics/answered.hpp>

namespace kvbench::replay {

/// `plain`: the state over H only, the entries with their own token's key and value and unit weights.
SquaredNorms squared_norms(const RowTruth& truth, const RowState& answer, const RowState& plain);

/// The tokens over which recall is computed: those that the method may drop. Empty: recall does not apply.
struct RecallRange {
  Index first = 0, last = 0;
  Index sinks = 0;  ///< first ones that the method protects, which ReplayRequest::recall_sinks counts
};

/// The overlap of query head g at query i of `exact`, which is query `entries_i` of the run of `entries`.
Overlap overlap_of(const HostEntries& entries, ExactBlock& exact, const RecallRange& range, Index g, Index i,
                   Index entries_i, Backend& backend);

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
  };

  /// Stores into `result`, which must outlive this object, as must `head` and what the options refer to.
  Measurements(const Head& head, const Options& options, ConfigurationResult& result);

  /// Measures the answers that `entries` gave to the queries of `run`. Rows of `answer`: g*run.size() + i.
  void add(ExactBlock& exact, QueryRun run, const HostEntries& entries, const RecallRange& recall, const Answer& answer,
           Backend& backend);

  /// Counts the entries of the run, without an answer.
  void count(const ExactBlock& exact, QueryRun run, const HostEntries& entries);

  /// Call after the last query. `cached`: tokens that the exact cache would hold instead of the method's. The tokens
  /// that the harness protects are added to both.
  void finish(methods::Footprint footprint, methods::Element kv_element, Index cached);

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
  double entries_ = 0;               ///< entries that answered, summed over query rows
  HostEntries::RowsRead rows_read_;  ///< summed over queries
  double query_rows_ = 0;
  bool recall_lost_ = false;                     ///< ReplayRequest::recall_sinks takes it away
  std::vector<SquaredNorms> squares_;            ///< by query head; difference and exact
  std::vector<std::vector<ClusterStep>> steps_;  ///< by query head, in query order; none where entries have no clusters
};

}  // namespace kvbench::replay
