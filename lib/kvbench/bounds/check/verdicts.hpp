// SPDX-License-Identifier: Apache-2.0
// Verdicts on the rows of a run, with the adjustments for many tests.
#pragma once

#include <span>

#include <kvbench/evidence/check_row.hpp>

namespace kvbench::bounds {

using evidence::CheckKind;
using evidence::CheckRow;
using evidence::is_fault;

/// Sets the intervals, p-values, powers and verdicts of all rows of a run.
///
/// law, exact, theorem, cost: `not applicable` without p-value and failures (but `vacuous` where the bound is), where
/// the assumptions are not met, where the bound is not a number, and where no outcome could be a violation (the text
/// then says how many trials are needed). `violated` where the p-value, adjusted by Holm over all these rows, is below
/// `alpha`, whether or not the bound is vacuous. Otherwise `vacuous`, `holds with margin` where the upper end of the
/// interval of the failure probability is below the allowed one, or `holds`. claim: claim_verdict(), with Holm over the
/// rows of the same check; `untestable` without a p-value. Where too few units make every result `undecided`, the text
/// says how many are needed.
/// data: none, or `not applicable` where the assumptions are not met or the check could not run.
void judge(std::span<CheckRow> rows, double alpha);

}  // namespace kvbench::bounds
