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
  untestable,    ///< they cannot show either, whatever they are
  // Of theorems, identities and costs, which data can only refute:
  consistent,
  violated,
  vacuous,
  not_applicable
};
std::string_view name_of(Verdict verdict);

/// The verdict on a claim whose two-sided test has this p-value, adjusted for the number of tests; NaN where there was no test.
/// `holds`: whether the estimate has the direction that the claim states.
Verdict claim_verdict(double p_adjusted, bool holds);

/// The verdict on a claim that is tested in several instances: supported where all are, contradicted where one is, untestable where
/// all are (or there are none), otherwise undecided.
Verdict joint_verdict(std::span<const Verdict> instances);

}  // namespace kvbench
