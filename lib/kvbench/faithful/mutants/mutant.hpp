// SPDX-License-Identifier: Apache-2.0
// Faults that are planted on purpose, to see which checks catch them (`kvbench validate --mutants`). A fault is given
// to a check as the function under test; the methods have no switches for faults.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/bounds/check/check.hpp>

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

}  // namespace kvbench::faithful
