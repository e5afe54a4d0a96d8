// SPDX-License-Identifier: Apache-2.0
#include "literals.hpp"

using namespace kvbench;
using namespace kvbench::test;

TEST_CASE("page bounds: largest, then smallest of each column; the last page may be short") {
  const auto ref = make_ref_backend();
  auto out = ref->allocate<float>(2, 4);

  ref->run(kernels::PageBounds<Buffer>{
      .rows = matrix<float>(*ref, {{1, -2}, {3, -4}, {2, -3}, {-5, 6}, {-7, 5}}), .page = 3, .out = out});

  CHECK(ref->read(out) == std::vector<float>{3, -2, 1, -4, -5, 6, -7, 5});
}

TEST_CASE("split signs: what is above zero, then what is below") {
  const auto ref = make_ref_backend();
  auto out = ref->allocate<float>(2, 4);

  ref->run(kernels::SplitSigns<Buffer>{.rows = matrix<float>(*ref, {{1, -2}, {0, 3}}), .out = out});

  CHECK(ref->read(out) == std::vector<float>{1, 0, 0, -2, 0, 3, 0, 0});
}

TEST_CASE("the inner product of split signs and bounds is the largest that any key within the bounds could reach") {
  const auto ref = make_ref_backend();
  auto bounds = ref->allocate<float>(1, 4);
  auto split = ref->allocate<float>(1, 4);
  auto score = ref->allocate<float>(1, 1);

  ref->run(kernels::PageBounds<Buffer>{.rows = matrix<float>(*ref, {{1, -2}, {3, -4}}), .page = 2, .out = bounds});
  ref->run(kernels::SplitSigns<Buffer>{.rows = matrix<float>(*ref, {{2, -1}}), .out = split});
  ref->run(kernels::InnerProducts<Buffer>{.a = split, .b = bounds, .out = score});

  CHECK(ref->read(score)[0] == 2 * 3 + 1 * 4);
}
