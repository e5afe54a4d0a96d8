// SPDX-License-Identifier: Apache-2.0
// The run of checks.
// The table of checks. Each theorem or claim has a source file, and a page in docs/theory that states it in the paper's
// notation and derives its constants. Claims about figures are stated by sweep files instead (figure_checks.hpp).
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

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

/// All checks, in the order of the table in all_checks.cpp.
std::span<const bounds::Check> all_checks();

/// Those of `checks` with these ids or prefixes ("subgen" means all of "subgen.*") about these methods; an empty list
/// means all. Throws Error with the nearest known name.
std::vector<const bounds::Check*> find_checks(std::span<const bounds::Check> checks,
                                              const std::vector<std::string>& ids,
                                              const std::vector<std::string>& methods);

}  // namespace kvbench::validate
