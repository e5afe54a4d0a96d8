// SPDX-License-Identifier: Apache-2.0
// Rows: results summarised over heads, queries and seeds. A record is plain numbers; lib/kvbench/report gives them
// names and text.
#pragma once

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <kvbench/core/statistics.hpp>
#include <kvbench/replay/records/predicted_kl.hpp>
#include <kvbench/replay/records/row.hpp>

namespace kvbench::replay {

/// The finest rows requested. trace: over all layers; layer: also one per layer; head: also one per query head and
/// seed; query: also one per query. Rows over layers and traces summarise all seeds.
enum class Grain { trace, layer, head, query };

/// NaN = the metric does not apply.
struct Summary {
  double mean = NAN, p1 = NAN, p50 = NAN, p90 = NAN, p99 = NAN, max = NAN;
  double lo = NAN, hi = NAN;  ///< 95 % bootstrap interval of the mean; NaN with fewer than two blocks of queries
  double rms = NAN;           ///< root of the mean square

  /// Whether the mean is known to better than a factor of four. Where a few huge values determine it, another sample of
  /// queries could give a mean of another order of magnitude.
  bool mean_is_estimable() const { return !(hi > 4 * lo); }
};

/// Sums of a figure of a row over heads, and the numbers of values in them, row-major: the input of paired comparisons.
struct ErrorSums {
  std::size_t seeds = 0;  ///< 0: no sums
  std::vector<double> blocks,
      block_counts;                        ///< [blocks of neighbouring queries][seeds], the heads of a prompt together
  std::vector<double> heads, head_counts;  ///< [kv heads][seeds]

  Index blocks_with_values() const;
};

/// The logarithm of an error. Errors below the rounding of fp32 count as equal.
inline constexpr double least_error = 1e-8;
double log_error(double error);

/// The mean of a figure of a row on one layer of one prompt, over its heads, queries and seeds.
struct PlaceError {
  std::size_t prompt = 0;
  std::int64_t layer = 0;
  double sum = 0, count = 0;

  double mean() const { return sum / count; }
};

struct RankingFigure;

/// A figure as tests of rows over heads take it.
struct TestedSums {
  ErrorSums sums, log_sums;  ///< of the figure, and of its logarithm
  std::vector<PlaceError> places;
};

struct Record : RowIdentity, Costs {
  std::string run;                           ///< of a sweep file; empty elsewhere
  std::string trace, prompt;                 ///< prompt: group name, or "all"
  std::string prompt_name;                   ///< ReplayFrame::Prompt::name; empty for "all"
  std::optional<Index> kv_head, query_head;  ///< absent: all
  std::optional<std::int64_t> query;         ///< position; absent: all
  Protocol protocol = Protocol::prefill;
  std::optional<std::uint32_t> seed;  ///< absent: all, or the method has none
  bool seeded = false;
  bool dense = false;     ///< no layer is compressed: all of them are kept whole by ReplayRequest::dense_layers
  Index query_rows = 0;   ///< (query, query head, seed) triples whose errors the row summarises
  Index layer_count = 0;  ///< layers whose bytes the row counts
  std::vector<std::int64_t> layers;  ///< their numbers, ascending; not of rows read back
  /// Those whose errors the row summarises: without the layers kept whole. Empty where `dense`.
  std::vector<std::int64_t> compressed_layers;
  std::vector<std::int64_t> replayed_layers;  ///< and those in which the method did not run; not of rows read back
  std::int64_t model_layers = 0;              ///< number of layers of the model
  double context_tokens = 0;
  /// "system 1.000, user 0.312": share of the tokens of the spans of a name that a kv head holds, mean; and share that
  /// none of the row's kv heads holds. Empty: unknown
  std::string kept_by_span, lost_by_span;
  double peak_bytes = 0;
  /// the configuration ran alone; otherwise it shared work with others of its method, and so do its costs
  bool alone = true;
  double compress_flops = 0, attend_flops = 0;  ///< sum over heads, mean over seeds
  PerMetric<Summary> metrics;
  Summary rel_err_fro;                    ///< over query heads
  PredictedKl kl;                         ///< of rows over all heads of traces with probes
  std::vector<ProbeSums> probes;          ///< behind `kl`, of the prompts with probes
  PredictedLayers probed;                 ///< how `kl` follows from them
  std::map<Metric, TestedSums> tested;    ///< of rows over heads: of the metrics of ranking figures that the row has
  Index blocks = 0;                       ///< blocks of neighbouring queries behind errors()
  FigureNumber ranked_by{};               ///< the figure of the next ones
  std::string best;                       ///< see mark_best(); empty where it does not apply
  double diff_best = NAN;                 ///< mean of the figure, or of its squares, minus that of the best
  Interval diff_best_interval{NAN, NAN};  ///< 95 %
  /// Geometric mean over layers and texts of the figure, and this mean divided by that of the best, with an interval at
  /// the level at which Holm tested the row. NaN where layers and texts are no sample of others.
  double geomean = NAN, ratio_best = NAN;
  Interval ratio_best_interval{NAN, NAN};
  std::string tested_over;   ///< units of this comparison: "10 of 30 layers and 3 texts", "24 blocks of queries"
  std::optional<bool> tied;  ///< the trace does not distinguish the row from the best; absent: not testable
  double compress_s = 0, attend_s = 0, exact_s = 0;  ///< sum over heads, mean over seeds

  bool over_prompts() const { return prompt == "all"; }
  const Summary& of(Metric metric) const { return metrics[metric]; }
  /// `tested` of a metric; empty where it lacks it.
  const TestedSums& tested_of(Metric metric) const;
  /// What is tested of rel_err, which every answer has: the queries that the row has seen.
  const TestedSums& errors() const { return tested_of(Metric::rel_err); }
  /// The figure that ranks the row; rel_err where none does.
  const RankingFigure& figure() const;
  double ranked_mean() const;
  /// Why the figure that ranks its group means nothing in this row, so that it is not ranked; "" where it does.
  std::string_view outside() const;
  bool is_outside() const { return !outside().empty(); }

  /// Whether the method knew the evaluated text, which a deployment would not. Such rows are not ranked.
  bool calibrated_on_itself() const { return reason.find(calibrated_on_evaluated) != std::string::npos; }
  /// Whether the row is about some of the layers among which a plan divides its budget. Not of rows read back.
  bool is_part_of_plan() const;

  /// Position among the rows of the replay: prompt, layer (0: all), rows by head, head, query head, method, budget.
  std::array<Index, 7> order{};
};

/// Part of the results of one head and one seed: query heads [g, g + heads) and queries [i, i + queries).
struct Sample {
  const HeadResult* head;
  const ConfigurationResult* result;
  std::size_t seed;  // index among the seeds of the row
  Index g = 0, heads = 0, i = 0, queries = 0;
};

/// Sets everything of a row but what it is about: status and reason, layers, costs, metrics, and the predicted KL of
/// rows over all heads. `seeds`: of the row; `prompts`: by HeadPlace::prompt.
void summarize(const std::vector<Sample>& samples, std::size_t seeds, std::span<const ReplayFrame::Prompt> prompts,
               Record& record);

/// All rows in order. `results` may hold only some of the methods (their configurations, on all heads): put_in_order()
/// then restores the order of one summary over the rows of all parts. `threads` compute them.
std::vector<Record> summarize(const ReplayResults& results, Grain grain, std::size_t threads = 1);
void put_in_order(std::vector<Record>& records);

}  // namespace kvbench::replay
