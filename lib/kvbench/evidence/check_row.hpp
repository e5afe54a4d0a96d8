// SPDX-License-Identifier: Apache-2.0
// The rows of `kvbench validate`: what a check measured, what the measurement was compared with, and the verdict; and
// the options of a run. Plain values, which tables, reports and command lines know without the checks (bounds).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/core/statistics.hpp>
#include <kvbench/core/verdict.hpp>
#include <kvbench/kernels/view.hpp>

namespace kvbench::evidence {

struct ValidateOptions {
  /// independent trials of a probability statement; 368 without a failure bound its probability by 1 %
  Index seeds = 400;
  double alpha = 1e-3;  ///< probability that a run without any fault reports one
  double eps = 0.5;     ///< accuracy, for theorems that state one
  double delta = 0.1;   ///< failure probability of these theorems
  Index queries = 8;    ///< per subject
  int threads = 0;      ///< that run checks; 0: all processors
  /// trials use the seeds from here on: another offset repeats the run with other draws
  std::uint32_t seed_offset = 0;
};

enum class CheckKind {
  law,      ///< an identity or a distribution that holds exactly; a small p-value is a fault
  exact,    ///< a deterministic statement; one exception is a fault
  theorem,  ///< holds with a stated probability; failures are counted over independent seeds
  data,     ///< a quantity for comparison with the bounds; it cannot be violated
  claim,    ///< a figure, table or sentence of a paper, tested on this trace in both directions
  cost,     ///< the declared number of operations against the stated complexity; no times
};
std::string_view name_of(CheckKind kind);

/// The result of one statement on one subject. NaN and empty texts mean "does not apply". A row is made by the builder
/// of its kind (CheckContext), which sets the identity, part, params, text, and
///
/// | kind        | always                          | where they apply                                           |
/// |-------------|---------------------------------|------------------------------------------------------------|
/// | law         | p_value                         | measured and bound: a ratio and 1                          |
/// | exact, cost | failures of trials, allowed = 0 | measured, bound                                            |
/// | theorem     | bound                           | literal, tight, data, trivial, measured, measured_q99,     |
/// |             |                                 | failures of trials, allowed and tests, or p_value          |
/// | claim       | p_value, holds                  | p_least, units, units_needed, over_places, measured, bound |
/// | data        |                                 | measured, measured_q99, and bounds to read beside them     |
///
/// Where a statement was not tested, `assumptions` is false and one of the texts says why.
struct CheckRow {
  std::string check;  ///< "subgen.lemma1"
  std::string part;   ///< which statement of the check, at which sizes
  CheckKind kind = CheckKind::theorem;
  std::string source;  ///< file name of the trace, or "synthetic:NAME"
  std::string prompt;  ///< name of the prompt's group in the file
  std::optional<std::int64_t> layer;
  std::optional<Index> kv_head;
  std::string params;            ///< "delta=0.5;t=16"
  bool assumptions = true;       ///< whether the assumptions of the theorem hold on this subject
  std::string assumptions_text;  ///< the assumptions in words, with their values
  double literal = NAN;          ///< bound with the constants of the paper
  double tight = NAN;            ///< bound with the constants derived in docs/theory
  double data = NAN;             ///< bound with measured quantities in place of worst cases
  double bound = NAN;            ///< what `measured` is compared with: one of the three, or the exact value
  double trivial = NAN;          ///< bound that holds without the theorem; a bound at or above it is vacuous
  double measured = NAN, measured_q99 = NAN;     ///< mean and 99 % quantile over seeds
  std::optional<std::int64_t> failures, trials;  ///< independent seeds
  double allowed = NAN;                          ///< failure probability that the statement allows; 0: none
  /// of the data if the statement holds; judge() computes it where failures are counted. Of claims: two-sided
  double p_value = NAN;
  Index tests = 1;          ///< tests of which p_value, by Bonferroni, is the smallest (queries of a subject)
  bool holds = false;       ///< of claims: whether the measured value has the direction that the claim states
  Index units = 0;          ///< of claims: independent units; 0: not counted
  std::string over_places;  ///< of claims whose units are layers and texts: "10 of 30 layers and 3 texts"
  /// of claims: units for a power of 80 % if the effect were the measured one. judge(): at least as many as Holm
  /// requires
  double units_needed = NAN;
  std::string text;  ///< the values in a sentence, or the reason why there is no verdict
  /// The smallest p-value that any data of this size could give. judge() computes it where failures are counted, and
  /// sets 0 where a check does not; checks of claims set it.
  double p_least = NAN;
  // Set by judge().
  Interval failure_interval{NAN, NAN};  ///< Clopper-Pearson, 95 %
  double detects = NAN;  ///< smallest failure rate that would be called a violation with a probability of 80 %
  /// Holm over the faults that one run could report, or over the rows of a check of kind claim
  double p_adjusted = NAN;
  Verdict verdict = Verdict::not_applicable;

  /// Notes that the assumptions are not met, in words.
  void unmet(std::string words) { assumptions = false, assumptions_text = std::move(words); }
  double slack() const { return bound / measured; }
  bool vacuous() const { return !std::isnan(trivial) && bound >= trivial; }
  /// Whether failures were counted against a bound that is not a number, so that they say nothing.
  bool bound_unknown() const { return kind == CheckKind::theorem && failures && std::isnan(bound); }
};

/// Whether the row is a fault of the code or of the paper.
inline bool is_fault(const CheckRow& row) { return row.verdict == Verdict::violated; }

}  // namespace kvbench::evidence
