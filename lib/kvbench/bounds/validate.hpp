// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/bounds/claims.hpp>

namespace kvbench {

struct ValidateResult {
  std::vector<CheckRow> rows;  ///< with verdicts, in the order of claims, then subjects
  bool interrupted = false;    ///< the rows are those of the finished checks
};

/// Runs the claims: those of Scope::once once, those of Scope::head on every subject, those of Scope::trace on `reader` where
/// there is one. Checks run in parallel on options.threads threads (0: all processors); the rows do not depend on their number. A
/// check that cannot run leaves a row `not applicable` with the reason.
ValidateResult validate(std::span<const Claim* const> claims, std::span<const SubjectSource> subjects,
                        const trace::Reader* reader, const ValidateOptions& options, const ReplayHooks& hooks = {});

}  // namespace kvbench
