// SPDX-License-Identifier: Apache-2.0
#include <kvbench/sweep/key.hpp>

#include <doctest/doctest.h>

#include <support/changed_inputs.hpp>

using namespace kvbench;

TEST_CASE_TEMPLATE("every input of a cell changes its key", Inputs, sweep::CellInputs, sweep::MeasureInputs) {
  const int members = testing::number_of_members<Inputs>();
  CHECK(members >= 5);
  CHECK(static_cast<int>(testing::keys_of_changed<Inputs>().size()) == members + 1);
}
