// SPDX-License-Identifier: Apache-2.0
// Which differences between configurations are real: paired comparisons on results by query.
#pragma once

#include <cmath>

#include <kvbench/compare/catalogue.hpp>
#include <kvbench/core/paired_test.hpp>

namespace kvbench {

inline constexpr double decided_at = 0.05;  ///< adjusted p-values up to this one are differences

/// Methods that others are measured by: `exact`, and `oracle-topk`, which looks at every key. They never count as the best.
bool is_reference(std::string_view method);

/// Recall, attention mass and hit rates are better when higher, errors when lower (log_z_err: nearer to zero).
bool higher_is_better(Metric metric);

/// So many sign flips that the smallest p-value passes Holm over `hypotheses`, twice over; at least 9999, at most a million.
int enough_flips(std::size_t hypotheses);

/// What one comparison stands for: everything of a layer, of a query head, of a prompt, or of a trace.
enum class Span { layer, head, prompt, all };

enum class Outcome { a_better, b_better, tied, skipped };
std::string_view name_of(Outcome outcome);

struct ComparisonRequest {
  std::vector<const QueryResults*> files;  ///< opened for `metric`
  std::optional<ConfigurationName> a, b;   ///< without b: a against all others; without both: all against the best
  Metric metric = Metric::rel_err;
  Span span = Span::layer;
};

struct Comparison {
  std::string run, trace, sha256, model, prompt, protocol;  ///< prompt: "all" where the span has all
  std::optional<std::int64_t> layer;                        ///< absent: all
  std::optional<Index> query_head;                          ///< absent: all
  Metric metric = Metric::rel_err;
  std::string a, budget_a, b, budget_b;
  Outcome outcome = Outcome::skipped;
  std::string reason;  ///< why there is no verdict; else what to know about it
  PairedTest test;
  double p_adjusted = 1;          ///< by Holm over all comparisons of the call
  Index pairs = 0, left_out = 0;  ///< (query, query head, seed) triples, and those to which the metric does not apply
  std::size_t family = 0;         ///< hypotheses that Holm counted
  std::size_t seeds = 0;          ///< that both sides have in common; 0 where neither draws
};

/// Rows in order of places. Throws Error where a name stands for nothing, or for more than one configuration.
///
/// A method with seeds against one without pairs the one value with each seed; two with seeds pair equal seeds, or, where they
/// have none in common, the k-th with the k-th. The best of a cell is chosen by the data that then test it: Holm counts all
/// k (k - 1) / 2 pairs of its k candidates, which holds whichever of them comes out best.
std::vector<Comparison> compare(const ComparisonRequest& request);

}  // namespace kvbench
