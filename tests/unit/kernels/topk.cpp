// SPDX-License-Identifier: Apache-2.0
#include "literals.hpp"

using namespace kvbench;
using namespace kvbench::test;

TEST_CASE("top-k: increasing columns, lower column on ties, -1 where too few compete") {
  const auto ref = make_ref_backend();
  const auto scores = matrix<float>(*ref, {{1, 3, 3, 2, 3},               // ties at 3: columns 1, 2, 4
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

TEST_CASE("top-k among listed columns") {
  const auto ref = make_ref_backend();
  const auto scores = matrix<float>(*ref, {{9, 1, 8, 8, 7, 3}});  // column 0 is not listed, 5 lies outside the range
  auto ids = ref->allocate<std::int32_t>(1, 2);

  ref->run(kernels::TopK<Buffer>{scores, column<std::int32_t>(*ref, {0}), column<std::int32_t>(*ref, {5}), ids,
                                 matrix<std::int32_t>(*ref, {{1, 3, 4, 5, -1}})});

  CHECK(ref->read(ids) == std::vector<std::int32_t>{3, 4});
}

TEST_CASE("top-k keeps the rest of the listed columns") {
  const auto ref = make_ref_backend();
  const auto scores = matrix<float>(*ref, {{9, 1, 8, 8, 7, 3}, {1, 2, 3, 4, 5, 6}});
  auto ids = ref->allocate<std::int32_t>(2, 2);
  auto rest = ref->allocate<std::int32_t>(2, 3);

  ref->run(kernels::TopK<Buffer>{.scores = scores,
                                 .first = column<std::int32_t>(*ref, {0, 2}),
                                 .last = column<std::int32_t>(*ref, {5, 3}),
                                 .ids = ids,
                                 .among = matrix<std::int32_t>(*ref, {{1, 2, 3, 4, 5}, {0, 2, 3, 4, 5}}),
                                 .rest = rest});

  CHECK(ref->read(ids) == std::vector<std::int32_t>{2, 3, 2, -1});            // of the second row only column 2 competes
  CHECK(ref->read(rest) == std::vector<std::int32_t>{1, 4, -1, -1, -1, -1});  // column 5 does not compete
}
