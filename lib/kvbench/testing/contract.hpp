// SPDX-License-Identifier: Apache-2.0
// The contract of methods as a table of properties, to which every row of the registry and every method in Python is
// held. Inputs are random, from fixed seeds.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <kvbench/testing/trial.hpp>

namespace kvbench::testing {

struct PropertyTest {
  std::string_view name;
  std::string_view demand;  ///< what must hold, as a clause
  /// Returns why the row is not held to it, and nothing where it is and holds it. Throws where it is broken.
  std::string (*run)(Trial&);
};
/// In the order in which they are tested.
std::span<const PropertyTest> property_tests();

enum class Compliance {
  holds,
  not_asked,  ///< the row does not declare it, or it concerns other kinds of methods
  refused,    ///< the method is Infeasible or Unavailable where it would be tested
  broken
};
struct Finding {
  const PropertyTest* test = nullptr;
  Compliance compliance = Compliance::holds;
  std::string sentence;  ///< why it is not asked or refused; what is broken; with which inputs
};
/// "holds  NAME: DEMAND", with the sentence where there is one.
std::string describe(const Finding& finding);

/// Throws Interrupted where a method does.
Finding run_test(const PropertyTest& test, const Row& row, Backend& backend);
/// All property tests, or the first alone if the method does not run at all.
std::vector<Finding> test_contract(const Row& row, Backend& backend);

}  // namespace kvbench::testing
