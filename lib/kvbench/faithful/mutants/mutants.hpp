// SPDX-License-Identifier: Apache-2.0
// The table of planted faults, and which checks catch them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <kvbench/faithful/mutants/mutant.hpp>

namespace kvbench::faithful {

/// All faults, by method.
std::span<const Mutant> all_mutants();
/// Those about these methods; an empty list means all.
std::vector<const Mutant*> find_mutants(const std::vector<std::string>& methods);

/// The streams that show the faults: the first 1024 tokens of some of synthetic_subjects().
std::vector<bounds::SubjectSource> mutant_subjects(Index queries);

struct MutantResult {
  const Mutant* mutant = nullptr;
  std::vector<std::string> caught_by;  ///< ids of the checks that have a violated row, without repetition
  std::vector<std::string> ran;        ///< ids of the checks that ran
  std::string first;                   ///< the first violated row: part and text
  /// Whether a check catches it or none has to.
  bool as_expected() const { return !caught_by.empty() || !mutant->exception.empty(); }
};

/// Runs each fault on each subject, in parallel as validate() does. The rows of one fault on all subjects are judged as
/// a run of their own. Throws Interrupted where hooks.stop is set.
std::vector<MutantResult> run_mutants(std::span<const Mutant* const> mutants,
                                      std::span<const bounds::SubjectSource> subjects,
                                      const bounds::ValidateOptions& options, const replay::ReplayHooks& hooks = {});

}  // namespace kvbench::faithful
