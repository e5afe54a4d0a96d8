// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <kvbench/bounds/claims.hpp>

namespace kvbench {

struct ValidateResult {
  std::vector<CheckRow> rows;  ///< judged, in the order of claims, then subjects
  bool interrupted = false;    ///< rows of the finished checks alone
};

/// Runs claims of Scope::once once, of Scope::head on every subject, of Scope::trace on `reader` where there is one. Parallel
/// over checks with options.threads (0: all processors); rows do not depend on their number. What a check cannot do becomes a
/// row `not applicable` with the reason.
ValidateResult validate(std::span<const Claim* const> claims, std::span<const SubjectSource> subjects,
                        const trace::Reader* reader, const ValidateOptions& options, const ReplayHooks& hooks = {});

}  // namespace kvbench
