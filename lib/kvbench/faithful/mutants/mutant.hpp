// SPDX-License-Identifier: Apache-2.0
// Faults that are planted on purpose, to see which checks catch them (`kvbench validate --mutants`). A fault is given
// to a check as the function under test; the methods have no switches for faults.
#pragma once

#include <functional>
#include <string>

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

}  // namespace kvbench::faithful
