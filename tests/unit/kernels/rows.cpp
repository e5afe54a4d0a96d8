// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "literals.hpp"

using namespace kvbench;
using namespace kvbench::test;

TEST_CASE("gather copies rows in the order of the ids") {
  auto out = ref().allocate<float>(3, 2);

  ref().run(
      kernels::GatherRows<Buffer>{matrix<float>(ref(), {{1, 2}, {3, 4}}), column<std::int32_t>(ref(), {1, 0, 1}), out});

  CHECK(ref().read(out) == std::vector<float>{3, 4, 1, 2, 3, 4});
}

TEST_CASE("squared norms") {
  auto out = ref().allocate<double>(2);

  ref().run(kernels::SquaredNorms<Buffer>{matrix<float>(ref(), {{3, -4}, {0, 0.5f}}), out});

  CHECK(ref().read(out) == std::vector<double>{25, 0.25});
}

TEST_CASE("softmax rows and their norms") {
  auto out = ref().allocate<float>(2, 2), norm = ref().allocate<float>(2);

  // exp(ln 3 - ln 5) = 0.6, exp(ln 4 - ln 5) = 0.8, norm 1; a row that sees nothing is zero
  const auto scores = matrix<float>(ref(), {{std::log(3.0f), std::log(4.0f)}, {-kInfinity, -kInfinity}});
  const auto log_sum_exp = column<float>(ref(), {std::log(5.0f), -kInfinity});
  ref().run(kernels::SoftmaxRows<Buffer>{scores, log_sum_exp, out, norm});

  const std::vector<float> p = ref().read(out), norms = ref().read(norm);
  CHECK(p[0] == doctest::Approx(0.6));
  CHECK(p[1] == doctest::Approx(0.8));
  CHECK(norms[0] == doctest::Approx(1));
  CHECK(std::vector<float>{p[2], p[3], norms[1]} == std::vector<float>{0, 0, 0});
}

TEST_CASE("rotation turns pairs by offset * theta^(-2p / dims)") {
  const double quarter = std::acos(0.0);
  kernels::RotateRows<Buffer> op;
  op.rows = matrix<float>(ref(), {{1, 2, 3, 4, 5}});
  op.offsets = column<std::int64_t>(ref(), {2});
  op.theta = 1 / (quarter * quarter);  // theta^(-1/2) = pi/2: pair 0 turns by 2, pair 1 by pi
  op.rotary_dims = 4;
  op.out = ref().allocate<float>(1, 5);
  const auto c = static_cast<float>(std::cos(2.0));
  const auto s = static_cast<float>(std::sin(2.0));

  ref().run(op);
  check_near(ref().read(op.out), {c - 3 * s, -2, s + 3 * c, -4, 5});  // pairs (0, 2) and (1, 3)

  op.interleaved = true;
  ref().run(op);
  check_near(ref().read(op.out), {c - 2 * s, s + 2 * c, -3, -4, 5});  // pairs (0, 1) and (2, 3)
}

TEST_CASE("column sums add exp(score - lse) over the queries of each head") {
  const float ln2 = std::log(2.0f);
  auto out = ref().allocate<float>(2, 2);

  ref().run(
      kernels::ColumnSums<Buffer>{matrix<float>(ref(), {{0, ln2}, {ln2, -kInfinity}, {3, 3}, {-kInfinity, -kInfinity}}),
                                  column<float>(ref(), {ln2, ln2, 3 + ln2, -kInfinity}), out});

  check_near(ref().read(out), {1.5f, 1, 0.5f, 0.5f});
}

TEST_CASE("pooling: max ignores the outside, mean counts it as zeros") {
  kernels::PoolRows<Buffer> op;
  op.rows = matrix<float>(ref(), {{-6, -3, -9, 12}});
  op.kernel = 3;
  op.out = ref().allocate<float>(1, 4);

  ref().run(op);
  CHECK(ref().read(op.out) == std::vector<float>{-3, -3, 12, 12});

  op.mode = kernels::Pooling::mean;
  ref().run(op);
  CHECK(ref().read(op.out) == std::vector<float>{-3, -6, 0, 1});

  op.mode = kernels::Pooling::none;
  ref().run(op);
  CHECK(ref().read(op.out) == std::vector<float>{-6, -3, -9, 12});
}

TEST_CASE("reduction over rows") {
  kernels::ReduceRows<Buffer> op;
  op.rows = matrix<float>(ref(), {{1, -8}, {2, -4}});
  op.out = ref().allocate<float>(1, 2);

  ref().run(op);
  CHECK(ref().read(op.out) == std::vector<float>{1.5f, -6});

  op.mode = kernels::Reduction::max;
  ref().run(op);
  CHECK(ref().read(op.out) == std::vector<float>{2, -4});

  op.mode = kernels::Reduction::sum;
  ref().run(op);
  CHECK(ref().read(op.out) == std::vector<float>{3, -12});

  // Two query heads of two queries: query i is rows i and 2 + i.
  op.rows = matrix<float>(ref(), {{1, -8}, {10, 20}, {2, -4}, {30, 50}});
  op.out = ref().allocate<float>(2, 2);
  ref().run(op);
  CHECK(ref().read(op.out) == std::vector<float>{3, -12, 40, 70});
}

TEST_CASE("page bounds: largest, then smallest of each column; the last page may be short") {
  auto out = ref().allocate<float>(2, 4);

  ref().run(kernels::PageBounds<Buffer>{
      .rows = matrix<float>(ref(), {{1, -2}, {3, -4}, {2, -3}, {-5, 6}, {-7, 5}}), .page = 3, .out = out});

  CHECK(ref().read(out) == std::vector<float>{3, -2, 1, -4, -5, 6, -7, 5});
}

TEST_CASE("split signs: what is above zero, then what is below") {
  auto out = ref().allocate<float>(2, 4);

  ref().run(kernels::SplitSigns<Buffer>{.rows = matrix<float>(ref(), {{1, -2}, {0, 3}}), .out = out});

  CHECK(ref().read(out) == std::vector<float>{1, 0, 0, -2, 0, 3, 0, 0});
}

TEST_CASE("the inner product of split signs and bounds is the largest that any key within the bounds could reach") {
  auto bounds = ref().allocate<float>(1, 4);
  auto split = ref().allocate<float>(1, 4);
  auto score = ref().allocate<float>(1, 1);

  ref().run(kernels::PageBounds<Buffer>{.rows = matrix<float>(ref(), {{1, -2}, {3, -4}}), .page = 2, .out = bounds});
  ref().run(kernels::SplitSigns<Buffer>{.rows = matrix<float>(ref(), {{2, -1}}), .out = split});
  ref().run(kernels::InnerProducts<Buffer>{.a = split, .b = bounds, .out = score});

  CHECK(ref().read(score)[0] == 2 * 3 + 1 * 4);
}

// Rows 1 2 4 8 in the first column, 1 0 0 0 in the second, halves to the next two. Source 0: 2 + .5, 4 + .5 and .5, .5.
// Source 1 has 2.5 and .5 by then: 4.5 + 1.25, 8 + 1.25 and .75, .25. No row follows source 3.
TEST_CASE("rows are handed on one after the other, with what they were handed") {
  auto rows = matrix<float>(ref(), {{1, 1}, {2, 0}, {4, 0}, {8, 0}});
  ref().run(kernels::SpreadRows<Buffer>{column<std::int32_t>(ref(), {0, 1, 3}), 2, 0.5f, rows});
  CHECK(ref().read(rows) == std::vector<float>{1, 1, 2.5f, 0.5f, 5.75f, 0.75f, 9.25f, 0.25f});
}

TEST_CASE("nothing changes without a source, or without rows after the source") {
  auto rows = matrix<float>(ref(), {{1}, {2}});
  ref().run(kernels::SpreadRows<Buffer>{column<std::int32_t>(ref(), {}), 2, 0.5f, rows});
  ref().run(kernels::SpreadRows<Buffer>{column<std::int32_t>(ref(), {0}), 0, 0.5f, rows});
  CHECK(ref().read(rows) == std::vector<float>{1, 2});
}

TEST_CASE("the cost of spreading counts each row that receives") {
  const Cost cost = kernels::cost(
      kernels::SpreadRows<Buffer>{column<std::int32_t>(ref(), {0, 1}), 3, 1, ref().allocate<float>(9, 5)});
  CHECK(cost.flops == 2 * 2 * 3 * 5);
}

TEST_CASE("top-k: increasing columns, lower column on ties, -1 where too few compete") {
  const auto scores =
      matrix<float>(ref(), {{1, 3, 3, 2, 3},               // ties at 3: columns 1, 2, 4
                            {-0.0f, 0, -kInfinity, 9, 9},  // -0 equals 0; column 3 on lies outside the range
                            {5, 4, 3, 2, 1},
                            {5, 4, 3, 2, 1}});
  const auto first = column<std::int32_t>(ref(), {0, 0, 1, 2});
  const auto last = column<std::int32_t>(ref(), {5, 3, 3, 2});
  auto ids = ref().allocate<std::int32_t>(4, 2);

  ref().run(kernels::TopK<Buffer>{scores, first, last, ids});

  CHECK(ref().read(ids) == std::vector<std::int32_t>{1, 2, 0, 1, 1, 2, -1, -1});
}

TEST_CASE("top-k of -inf scores still competes") {
  const auto scores = matrix<float>(ref(), {{-kInfinity, -kInfinity, 0}});
  auto ids = ref().allocate<std::int32_t>(1, 2);

  ref().run(kernels::TopK<Buffer>{scores, column<std::int32_t>(ref(), {0}), column<std::int32_t>(ref(), {3}), ids});

  CHECK(ref().read(ids) == std::vector<std::int32_t>{0, 2});
}
