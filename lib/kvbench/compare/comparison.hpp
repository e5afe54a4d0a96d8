// SPDX-License-Identifier: Apache-2.0
// Tests which differences between configurations are significant: paired comparisons on results per query.
#pragma once

#include <cmath>

#include <kvbench/compare/catalogue.hpp>
#include <kvbench/core/paired_test.hpp>
#include <kvbench/core/place_test.hpp>
#include <kvbench/core/verdict.hpp>
#include <kvbench/replay/records/predicted_kl.hpp>

namespace kvbench::compare {

inline constexpr double equal_cost = 1.05;  ///< ratio of costs up to which configurations are called equally expensive

/// Reference methods, which are never the best: `exact`, `oracle-topk`, which reads every key, and `oracle-error`.
bool is_reference(std::string_view method);
/// Methods that tables and figures show for orientation and do not rank: the references, and `random`.
bool is_baseline(std::string_view method);

/// Number of random sign patterns: twice as many as the smallest p-value needs to pass Holm over `hypotheses`; from
/// 9999 to 999999.
int enough_flips(std::size_t hypotheses);

/// The scope of one comparison: a layer, a query head, a prompt, or a trace. Documents of an evaluation are always
/// compared over all documents with the same model and EvalSetting.
enum class Span { layer, head, prompt, all };
std::string_view name_of(Span span);

/// tied: tested without a difference. untested: these data can show none, whatever its size.
enum class Outcome { a_better, b_better, tied, untested, skipped };
std::string_view name_of(Outcome outcome);

/// The metric of this name that results of replay are compared by: of attention, or predicted KL (Predictions).
std::optional<replay::MetricInfo> find_query_metric(std::string_view name);

struct ComparisonRequest {
  std::vector<const QueryResults*> files;  ///< opened for `metric`
  std::optional<ConfigurationName> a, b;   ///< without b: a against all others; without both: all against the best
  replay::MetricInfo metric = info_of(replay::Metric::rel_err);  ///< of attention, or of damage
  Span span = Span::layer;
};

struct Comparison {
  std::string run, trace, sha256, model, prompt, protocol;  ///< prompt: "all" for Span::all
  EvalSetting eval;                                         ///< empty: of queries
  std::optional<std::int64_t> layer;                        ///< absent: all
  std::optional<Index> query_head;                          ///< absent: all
  replay::MetricInfo metric;
  std::string a, b;
  Budget budget_a, budget_b;
  Outcome outcome = Outcome::skipped;
  std::string reason;  ///< why there is no verdict, or a note on the verdict
  PairedTest test;
  PlaceTest places;                ///< of log(a / b), or a - b; this and the next one: not of rows read back
  std::optional<PairedSums> sums;  ///< both sides, by block and seed
  /// mean_a / mean_b on a layer and text: the geometric mean over layers and texts; for metrics that may be negative
  /// the mean of mean_a - mean_b. NaN where layers and texts are no sample of others (place_test()).
  double over_places = NAN;
  Interval over_places_interval{NAN, NAN};  ///< for layers and texts like these
  double places_a = NAN, places_b = NAN;    ///< the means of both over layers and texts, of the same kind
  /// Units of the test that decides: "10 of 30 layers and 3 texts", else those of `test`, which holds for the replayed
  /// layers and texts alone: "24 blocks of queries", "12 documents". Empty where nothing was tested.
  std::string tested_over;
  std::size_t units = 0;  ///< of that test: layers or texts, whichever are fewer, or blocks or documents
  /// Over some layers of a model, of which no test could say what they mean for the others.
  bool some_layers_alone = false;
  double p_value = NAN;               ///< of that test: two-sided, of "a and b are equal on average"
  Interval ratio_interval{NAN, NAN};  ///< of mean_a / mean_b, by the same bootstrap as that of the difference
  double p_adjusted = 1;              ///< by Holm over all comparisons of the call
  Index
      pairs = 0,
      left_out =
          0;  ///< number of (query, query head, seed) triples, or of documents, with both values, and of those without
  std::size_t family = 0;  ///< hypotheses that Holm counted
  std::size_t seeds = 0;   ///< number of pairs of seeds; 0 where neither side uses random numbers
  bool decided_over_places() const { return !std::isnan(over_places); }
  bool a_is_higher() const { return decided_over_places() ? over_places > equal_places() : test.difference > 0; }
  bool a_is_lower() const { return decided_over_places() ? over_places < equal_places() : test.difference < 0; }
  /// Sets all intervals to those at this level, at which Holm tested the row (evidence::adjust()).
  void set_level(double level);
  /// What the test is about, with its interval: a / b, or a - b of metrics that may be negative.
  std::pair<double, Interval> effect() const {
    if (decided_over_places()) return {over_places, over_places_interval};
    if (metric.has_ratio()) return {ratio(), ratio_interval};
    return {test.difference, test.interval};
  }
  /// The means whose ratio or difference effect() is. Geometric ones where has_geometric_means().
  std::pair<double, double> means() const {
    return decided_over_places() ? std::pair(places_a, places_b) : std::pair(test.mean_a, test.mean_b);
  }
  bool has_geometric_means() const { return decided_over_places() && metric.has_ratio(); }
  double ratio() const { return metric.has_ratio() ? test.mean_a / test.mean_b : NAN; }
  /// The independent unit of the test: a block of queries, a probe, or a document.
  std::string_view unit() const { return !eval.empty() ? "document" : is_prediction() ? "probe" : "block"; }
  bool is_prediction() const { return replay::is_prediction(metric); }

 private:
  double equal_places() const { return metric.has_ratio() ? 1 : 0; }
};

/// "t.h5, run a, prompt 0, layer 3, head 1", as far as the comparison is about them, or "m.gguf, book.txt, 4096 tokens,
/// question outside, task passkey, inject one 3"; the trace, or what comes before the task, where `with_source`.
std::string place_text(const Comparison& row, bool with_source);

/// Rows in the order of the groups, at least one. Throws Error where a name matches no configuration, or several sets
/// of parameters, and where nothing can be compared.
///
/// A method without seeds pairs its value with every seed of the other; two methods with seeds pair equal seeds, or,
/// where they have none in common, the k-th with the k-th. The data that select the best of a group also test it, so
/// Holm counts all k (k - 1) / 2 pairs of its k candidates; this is valid whichever candidate is the best. Over layers
/// and texts it counts the k - 1 comparisons with the best (see mark_best()).
std::vector<Comparison> compare(const ComparisonRequest& request);

}  // namespace kvbench::compare
