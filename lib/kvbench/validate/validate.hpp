// SPDX-License-Identifier: Apache-2.0
// The run of checks.
#pragma once

#include <map>
#include <mutex>

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::validate {

/// The rows of checks that have finished, while others run. Thread-safe.
class FinishedRows {
 public:
  /// `check`: its number in the order of the result.
  void add(std::size_t check, std::vector<bounds::CheckRow> rows);
  /// The rows so far with verdicts (judge()), in the order of checks, then subjects.
  std::vector<bounds::CheckRow> judged(double alpha) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::size_t, std::vector<bounds::CheckRow>> rows_;
};

/// Runs the checks: those of Scope::once once, those of Scope::head on every subject, those of Scope::trace on `reader`
/// where there is one. Checks run in parallel on options.threads threads (0: all processors); the rows do not depend on
/// their number. A check that cannot run leaves a row `not applicable` with the reason. Throws Interrupted where
/// hooks.stop is set; `finished` then holds the rows of the finished checks, and otherwise all rows.
void validate(std::span<const bounds::Check* const> checks, std::span<const bounds::SubjectSource> subjects,
              const trace::Reader* reader, const bounds::ValidateOptions& options, FinishedRows& finished,
              const replay::ReplayHooks& hooks = {});

}  // namespace kvbench::validate
