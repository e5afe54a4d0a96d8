// SPDX-License-Identifier: Apache-2.0
#include "literals.hpp"

using namespace kvbench;
using namespace kvbench::test;

TEST_CASE("top-k: increasing columns, lower column on ties, -1 where too few compete") {
  const auto ref = make_ref_backend();
  const auto scores =
      matrix<float>(*ref, {{1, 3, 3, 2, 3},               // ties at 3: columns 1, 2, 4
                           {-0.0f, 0, -kInfinity, 9, 9},  // -0 equals 0; column 3 on lies outside the range
                           {5, 4, 3, 2, 1},
                           {5, 4, 3, 2, 1}});
  const auto first = column<std::int32_t>(*ref, {0, 0, 1, 2});
  const auto last = column<std::int32_t>(*ref, {5, 3, 3, 2});
  auto ids = ref->allocate<std::int32_t>(4, 2);

  ref->run(kernels::TopK<Buffer>{scores, first, last, ids});

  CHECK(ref->read(ids) == std::vector<std::int32_t>{1, 2, 0, 1, 1, 2, -1, -1});
}

TEST_CASE("top-k of -inf scores still competes") {
  const auto ref = make_ref_backend();
  const auto scores = matrix<float>(*ref, {{-kInfinity, -kInfinity, 0}});
  auto ids = ref->allocate<std::int32_t>(1, 2);

  ref->run(kernels::TopK<Buffer>{scores, column<std::int32_t>(*ref, {0}), column<std::int32_t>(*ref, {3}), ids});

  CHECK(ref->read(ids) == std::vector<std::int32_t>{0, 2});
}
