// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/key.hpp>

#include <doctest/doctest.h>

#include <support/changed_inputs.hpp>

using namespace kvbench;

TEST_CASE_TEMPLATE("every input of a record of an evaluation changes its key", Inputs, eval::DocumentInputs,
                   eval::PassInputs) {
  const int members = testing::number_of_members<Inputs>();
  CHECK(members >= 8);
  CHECK(static_cast<int>(testing::keys_of_changed<Inputs>().size()) == members + 1);
}
