// SPDX-License-Identifier: Apache-2.0
// Claims of papers as relations between results, such as "the error of A is lower than that of B, on every layer".
// Sweeps, comparisons and checks judge them with the same function.
#pragma once

#include <kvbench/compare/comparison.hpp>

namespace kvbench::compare {

/// What a claim says about the mean of a metric of two configurations, or of one configuration and a number. It says so
/// of every budget at which both have results, or of the budgets that the names state.
struct Relation {
  enum class Kind { lower, higher, at_least, equal };
  Kind kind = Kind::lower;
  /// of a sweep file; empty: every run. Results without runs, such as those of --raw, belong to every run
  std::string run;
  std::string a, b;     ///< configurations, see parse_configuration()
  double number = NAN;  ///< in place of b
  double within = 0;    ///< at_least, equal: the share of b by which a may miss it
  Span by = Span::all;  ///< what it holds for: every layer, query head or prompt, or the mean over all
  Index tokens = 0;     ///< it cannot be tested at budgets of fewer tokens,
  std::string below;    ///< because ("one cluster of 80 tokens exceeds the budget")
};
std::string_view name_of(Relation::Kind kind);
/// "subgen lower than uniform[seed=1], by layer"
std::string describe(const Relation& relation);

struct PaperClaim {
  std::string id;  ///< "balancekv.vs_uniform", by which `kvbench validate` knows it; may be empty
  std::string text;
  replay::MetricInfo metric = info_of(replay::Metric::rel_err);  ///< one that find_query_metric() finds
  std::vector<Relation> relations;                               ///< the claim holds where all of them do
  std::string untestable;                                        ///< why there are none
};

/// A relation at one budget and place.
struct RelationResult {
  std::string relation;   ///< describe()
  Comparison comparison;  ///< of a and b; p_adjusted: of p_value, by Holm over the claim
  double p_value = NAN;   ///< two-sided, of the order that the relation states; NaN where it cannot be tested
  bool holds = false;     ///< whether the means have this order
  /// blocks of queries that would decide it: units_for_power() of the inequality that gave p_value; NaN over layers and
  /// texts
  double units_needed = NAN;
  Verdict verdict = Verdict::untestable;
};

struct ClaimResult {
  PaperClaim claim;
  Verdict verdict = Verdict::untestable;  ///< joint_verdict() of the results
  std::vector<RelationResult> results;
};

/// Judges a claim by the test of comparisons, with Holm over all its results: over layers and texts where they are a
/// sample, otherwise over blocks of queries. A result over some of the layers of a model that no test over layers can
/// carry to the others, such as one layer, is undecided. lower, higher: of a and b as they are. at_least: of a and b (1
/// - within). equal: a must be above b (1 - within) and below b (1 + within). `files` must be open for the metric of
/// the claim. Throws Error for names that are malformed; configurations that the files lack make a result untestable.
ClaimResult test_claim(const PaperClaim& claim, const std::vector<const QueryResults*>& files);

/// "run a, prompt 0, layer 3, budget 25%": place_text() of the comparison with its budget; empty where there was none.
std::string test_text(const RelationResult& result, bool with_trace);
/// "ratio 0.93 [0.9, 0.96], p = 0.001 (0.012 by Holm), 10 of 30 layers and 3 texts, 10 seeds", or the reason why there
/// was no test.
std::string effect_text(const RelationResult& result);
/// The verdict with its numbers: a line with verdict and claim, then lines with the tests.
std::string verdict_text(const ClaimResult& result);
/// That of each.
std::string verdict_text(std::span<const ClaimResult> results);

}  // namespace kvbench::compare
