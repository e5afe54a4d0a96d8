// SPDX-License-Identifier: Apache-2.0
// Faults that are planted on purpose, to see which checks catch them (`kvbench validate --mutants`). A fault is given
// to a check as the function under test; the methods have no switches for faults.
// The table of planted faults, and which checks catch them.
// The recomputations of papers, with rules that may be faulty, in place of the methods.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <kvbench/bounds/check/check.hpp>
#include <kvbench/faithful/oracle/chelsea.hpp>
#include <kvbench/faithful/oracle/subgen.hpp>

namespace kvbench::faithful {

struct Mutant {
  std::string id;           ///< "subgen.value-norm"
  std::string method = "";  ///< the method that would have the fault; empty: none
  std::string fault;        ///< one sentence
  std::string place;        ///< of the correct rule in the paper
  /// Runs the checks that could catch the fault on the context's subject, with the fault in place. Rows have the ids of
  /// these checks: see CheckContext::as().
  std::function<void(bounds::CheckContext&)> run;
  /// Why no check has to catch the fault; empty: one must.
  std::string exception = "";
};

// The faults, a file each.
std::vector<Mutant> balancekv_mutants();  ///< of BalanceKV, its walk and its trees
std::vector<Mutant> baseline_mutants();   ///< of the uniform baselines
std::vector<Mutant> chelsea_mutants();
std::vector<Mutant> exact_mutants();         ///< of the exact pass, with which every answer is compared
std::vector<Mutant> predicted_kl_mutants();  ///< of predicted KL, and of the probes that it is computed from
std::vector<Mutant> quantiser_mutants();     ///< by what they break: a law, a bound, a rotation or a step
std::vector<Mutant> subgen_mutants();

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

bounds::ChelseaUnderTest chelsea_with(const ChelseaRules& rules);

/// Adds the rows of subgen.algorithm1, .lemma1, .lemma2, .partition, .amm and .theorem1 for Algorithm 1 recomputed by
/// these rules. The statistical checks see the first 256 tokens of the subject, the last quarter of which is decoded;
/// they do not run where there are fewer than 16 tokens.
void run_subgen_rules(bounds::CheckContext& context, const SubgenRules& rules);

}  // namespace kvbench::faithful
