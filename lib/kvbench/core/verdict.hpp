// SPDX-License-Identifier: Apache-2.0
// What data say about a statement.
#pragma once

#include <span>
#include <string_view>

namespace kvbench {

inline constexpr double decided_at = 0.05;  ///< largest adjusted p-value of a significant difference

enum class Verdict {
  // Of claims, which are tested in both directions:
  supported,     ///< the data show that the claim holds here
  contradicted,  ///< the data show that its opposite holds here
  undecided,     ///< they show neither
  untestable,    ///< there are no data that could show either
  // Of theorems, identities and costs:
  holds_with_margin,  ///< the interval of the failure probability lies below the allowed one
  holds,              ///< the data do not refute it
  violated,           ///< they do: a fault of the code or of the paper
  vacuous,            ///< it holds, but so does the trivial bound
  not_applicable,     ///< its assumptions are not met, or the data could not refute it
  none                ///< of rows that only report a quantity
};
std::string_view name_of(Verdict verdict);
/// Whether the statement holds, with margin or without.
inline bool holds(Verdict verdict) { return verdict == Verdict::holds || verdict == Verdict::holds_with_margin; }

/// The verdict on a claim whose two-sided test has this p-value, adjusted for the number of tests; NaN where there was
/// no test. Tests of too few units have the p-value 1. `holds`: whether the estimate has the direction that the claim
/// states.
Verdict claim_verdict(double p_adjusted, bool holds);

/// The verdict on a claim that is tested in several instances: supported where all are, contradicted where one is,
/// untestable where all are (or there are none), otherwise undecided.
Verdict joint_verdict(std::span<const Verdict> instances);

}  // namespace kvbench
