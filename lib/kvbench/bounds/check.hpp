// SPDX-License-Identifier: Apache-2.0
// What a check found, and what it means: the rows of `kvbench validate`.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/core/statistics.hpp>
#include <kvbench/kernels/view.hpp>

namespace kvbench {

enum class CheckKind {
  law,      ///< an identity or a distribution that holds exactly: a small p-value is a fault
  exact,    ///< deterministic: one failure is a fault
  theorem,  ///< holds with a stated probability: failures are counted over independent seeds
  data,     ///< a quantity that a reader wants beside the bounds; nothing to violate
  claim,    ///< a figure, table or sentence of a paper, tested on this trace: `violated` is a finding, not a fault
  cost,     ///< declared work against a complexity; no clock
};
std::string_view name_of(CheckKind kind);

enum class Verdict { consistent, violated, vacuous, not_applicable };
std::string_view name_of(Verdict verdict);

/// One statement on one subject. NaN and empty: does not apply.
struct CheckRow {
  std::string claim;  ///< "subgen.lemma1"
  std::string part;   ///< which of its statements, at which sizes
  CheckKind kind = CheckKind::theorem;
  std::string source;  ///< file name of the trace, or "synthetic:NAME"
  std::string prompt;  ///< group name
  std::optional<std::int64_t> layer;
  std::optional<Index> kv_head;
  std::string params;                            ///< "delta=0.5;t=16"
  bool assumptions = true;                       ///< of the theorem, met on this subject
  std::string assumptions_text;                  ///< with the values that decide
  double literal = NAN;                          ///< bound with the constants of the paper
  double tight = NAN;                            ///< with the constants derived in docs/theory
  double data = NAN;                             ///< with what the data say in place of worst cases
  double bound = NAN;                            ///< the one of the three, or the exact value, that `measured` is held against
  double trivial = NAN;                          ///< what holds without the theorem: a bound at or above it is vacuous
  double measured = NAN, measured_q99 = NAN;     ///< mean and 99 % quantile over seeds
  std::optional<std::int64_t> failures, trials;  ///< of independent seeds
  double allowed = NAN;                          ///< failure probability that the statement grants; 0: none
  double p_value = NAN;  ///< of the data if the statement holds; judge() derives it where failures are counted
  std::string text;      ///< the numbers in a sentence, or why there is no verdict
  // Set by judge().
  Interval failure_interval{NAN, NAN};  ///< Clopper-Pearson, 95 %
  double p_adjusted = NAN;              ///< Holm over the faults that one run could report
  Verdict verdict = Verdict::not_applicable;

  /// For statements that hold without exception: in how many of the cases looked at it did not.
  void count_exceptions(std::int64_t exceptions, std::int64_t cases) { failures = exceptions, trials = cases, allowed = 0; }
  double slack() const { return bound / measured; }
  bool vacuous() const { return !std::isnan(trivial) && bound >= trivial; }
};

/// Sets intervals, p-values and verdicts of all rows of a run. A row is `violated` where its assumptions are met, its bound is
/// not vacuous and its p-value, adjusted by Holm over all law, exact, theorem and cost rows (claims: over the claims), is below
/// `alpha`. A row without p-value and failures is `consistent` where it is data, else `not applicable`.
void judge(std::span<CheckRow> rows, double alpha);

/// A fault of the code or of the paper, as against a finding about a trace.
bool is_fault(const CheckRow& row);

}  // namespace kvbench
