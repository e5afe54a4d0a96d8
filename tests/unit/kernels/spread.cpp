// SPDX-License-Identifier: Apache-2.0
#include "literals.hpp"

using namespace kvbench;
using namespace kvbench::test;

// Rows 1 2 4 8 in the first column, 1 0 0 0 in the second, halves to the next two. Source 0: 2 + .5, 4 + .5 and .5, .5.
// Source 1 has 2.5 and .5 by then: 4.5 + 1.25, 8 + 1.25 and .75, .25. No row follows source 3.
TEST_CASE("rows are handed on one after the other, with what they were handed") {
  const auto ref = make_ref_backend();
  auto rows = matrix<float>(*ref, {{1, 1}, {2, 0}, {4, 0}, {8, 0}});
  ref->run(kernels::SpreadRows<Buffer>{column<std::int32_t>(*ref, {0, 1, 3}), 2, 0.5f, rows});
  CHECK(ref->read(rows) == std::vector<float>{1, 1, 2.5f, 0.5f, 5.75f, 0.75f, 9.25f, 0.25f});
}

TEST_CASE("nothing changes without a source, or without rows after the source") {
  const auto ref = make_ref_backend();
  auto rows = matrix<float>(*ref, {{1}, {2}});
  ref->run(kernels::SpreadRows<Buffer>{column<std::int32_t>(*ref, {}), 2, 0.5f, rows});
  ref->run(kernels::SpreadRows<Buffer>{column<std::int32_t>(*ref, {0}), 0, 0.5f, rows});
  CHECK(ref->read(rows) == std::vector<float>{1, 2});
}

TEST_CASE("the cost of spreading counts each row that receives") {
  const auto ref = make_ref_backend();
  const Cost cost =
      kernels::cost(kernels::SpreadRows<Buffer>{column<std::int32_t>(*ref, {0, 1}), 3, 1, ref->allocate<float>(9, 5)});
  CHECK(cost.flops == 2 * 2 * 3 * 5);
}
