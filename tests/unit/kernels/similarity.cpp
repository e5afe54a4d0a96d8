// SPDX-License-Identifier: Apache-2.0
#include "literals.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

struct Matches {
  std::vector<std::int32_t> best;
  std::vector<float> score;
};

Matches run(kernels::BestMatch<Buffer> op) {
  const auto best = ref().allocate<std::int32_t>(op.points.rows());
  const auto score = ref().allocate<float>(op.points.rows());
  op.best = best;
  op.score = score;
  ref().run(op);
  return {ref().read(best), ref().read(score)};
}

}  // namespace

TEST_CASE("normalized rows have length 1, rows of zeros stay; in place is allowed") {
  auto rows = matrix<float>(ref(), {{3, 4}, {0, 0}, {-0.5f, 0}});

  ref().run(kernels::NormalizeRows<Buffer>{.rows = rows, .out = rows});

  CHECK(ref().read(rows) == std::vector<float>{0.6f, 0.8f, 0, 0, -1, 0});
}

TEST_CASE("inner products of all pairs of rows") {
  auto out = ref().allocate<float>(2, 3);

  ref().run(kernels::InnerProducts<Buffer>{
      .a = matrix<float>(ref(), {{1, 2}, {3, -1}}), .b = matrix<float>(ref(), {{1, 0}, {0, 1}, {2, -2}}), .out = out});

  CHECK(ref().read(out) == std::vector<float>{1, 2, -2, 3, -1, 8});
}

TEST_CASE("best match: the lowest candidate on ties") {
  const auto candidates = matrix<float>(ref(), {{1, 0}, {2, 0}, {0, 3}, {2, 0}});

  // products: 1 2 0 2; 0 0 -3 0; 2 4 9 4
  const Matches m = run({.points = matrix<float>(ref(), {{1, 0}, {0, -1}, {2, 3}}), .candidates = candidates});

  CHECK(m.best == std::vector<std::int32_t>{1, 0, 2});
  CHECK(m.score == std::vector<float>{2, 0, 9});
}

TEST_CASE("best match: minus half the squared norm as bias gives the nearest candidate") {
  // products less half norms: 2 - 0.5, 10 - 12.5, -4 - 2; 3 - 0.5, 15 - 12.5, -6 - 2: 3 lies between 1 and 5
  const Matches m = run({.points = matrix<float>(ref(), {{2}, {3}, {3.5f}}),
                         .candidates = matrix<float>(ref(), {{1}, {5}, {-2}}),
                         .bias = column<float>(ref(), {-0.5f, -12.5f, -2})});

  CHECK(m.best == std::vector<std::int32_t>{0, 0, 1});
  CHECK(m.score == std::vector<float>{1.5f, 2.5f, 5});
}

TEST_CASE("best match: candidates of a range only, -1 where it is empty") {
  const Matches m = run({.points = matrix<float>(ref(), {{1}, {1}, {-1}, {1}}),
                         .candidates = matrix<float>(ref(), {{9}, {1}, {2}, {7}}),
                         .first = column<std::int32_t>(ref(), {0, 1, 1, 2}),
                         .last = column<std::int32_t>(ref(), {4, 3, 3, 2})});

  CHECK(m.best == std::vector<std::int32_t>{0, 2, 1, -1});
  CHECK(m.score == std::vector<float>{9, 2, -1, -kInfinity});
}

TEST_CASE("best match: no point is its own match where skip_self") {
  const auto rows = matrix<float>(ref(), {{3}, {2}, {1}});

  const Matches m = run({.points = rows, .candidates = rows, .skip_self = true});
  CHECK(m.best == std::vector<std::int32_t>{1, 0, 0});
  CHECK(m.score == std::vector<float>{6, 6, 3});

  const auto alone = rows.slice(0, 1);
  CHECK(run({.points = alone, .candidates = alone, .skip_self = true}).best == std::vector<std::int32_t>{-1});
}

TEST_CASE("best match: a candidate with a bias of -inf is taken where there is no other") {
  const Matches m = run({.points = matrix<float>(ref(), {{1}}),
                         .candidates = matrix<float>(ref(), {{1}, {1}}),
                         .bias = column<float>(ref(), {-kInfinity, -kInfinity})});

  CHECK(m.best == std::vector<std::int32_t>{0});
  CHECK(m.score == std::vector<float>{-kInfinity});
}

TEST_CASE("mean rows: rows of label -1 count nowhere, rows of out without a label stay") {
  auto out = matrix<float>(ref(), {{7, 7}, {7, 7}, {7, 7}});
  auto mass = ref().allocate<float>(3);
  kernels::MeanRows<Buffer> op{.rows = matrix<float>(ref(), {{1, 2}, {100, 100}, {3, 6}, {5, -5}}),
                               .labels = column<std::int32_t>(ref(), {2, -1, 2, 0}),
                               .out = out,
                               .mass = mass};

  ref().run(op);
  CHECK(ref().read(out) == std::vector<float>{5, -5, 7, 7, 2, 4});
  CHECK(ref().read(mass) == std::vector<float>{1, 0, 2});

  op.weights = column<float>(ref(), {3, 1, 1, 0.5f});
  ref().run(op);
  CHECK(ref().read(out) == std::vector<float>{5, -5, 7, 7, 1.5f, 3});
  CHECK(ref().read(mass) == std::vector<float>{0.5f, 0, 4});
}
