// SPDX-License-Identifier: Apache-2.0
// Keys of one dimension and a scale of ln 2 make exp(scale <k_i, k_j>) = 2^(k_i k_j).
#include "literals.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

using Walk = kernels::BalanceWalk<Buffer>;

const float kLn2 = std::log(2.0f);

Walk one_block(std::initializer_list<std::initializer_list<float>> keys, float step, std::vector<double> uniforms) {
  return {.keys = matrix<float>(ref(), keys),
          .starts = column<std::int32_t>(ref(), {0, static_cast<std::int32_t>(keys.size())}),
          .shift = column<float>(ref(), {0}),
          .step = column<float>(ref(), {step}),
          .scale = kLn2,
          .uniforms = column<double>(ref(), std::move(uniforms))};
}

struct Result {
  std::vector<std::int32_t> signs, fails;
};

Result run(Walk op) {
  const auto signs = ref().allocate<std::int32_t>(op.keys.rows());
  const auto fails = ref().allocate<std::int32_t>(op.shift.rows());
  op.signs = signs;
  op.fails = fails;
  ref().run(op);
  return {ref().read(signs), ref().read(fails)};
}

using Signs = std::vector<std::int32_t>;

}  // namespace

// s: 0; K(1,0) = 2; 4 - 4 = 0; 1/2 - 1/2 + 1/4. Chances of +1 at a step of 0.1: 0.5, 0.3, 0.5, 0.475.
TEST_CASE("balance walk: each sign is drawn against the kernel sum of the rows before it") {
  const auto walk = [&](std::vector<double> uniforms) {
    return run(one_block({{1}, {1}, {2}, {-1}}, 0.1f, std::move(uniforms)));
  };

  CHECK(walk({0.4, 0.35, 0.45, 0.48}).signs == Signs{1, -1, 1, -1});
  CHECK(walk({0.4, 0.35, 0.45, 0.47}).signs == Signs{1, -1, 1, 1});
  CHECK(walk({0.4, 0.29, 0.45, 0.48}).signs[1] == 1);
  CHECK(walk({0.6, 0.69, 0.45, 0.48}).signs[1] == 1);  // s_1 = -2: the chance is 0.7
  CHECK(walk({0.4, 0.35, 0.45, 0.48}).fails == std::vector<std::int32_t>{0});
}

TEST_CASE("balance walk: rows whose chance leaves [0, 1] are counted and certain") {
  const Result r = run(one_block({{1}, {1}, {2}, {-1}}, 0.3f, {0.4, 1e-9, 0.45, 0.4}));  // 0.3 * 2 > 1/2

  CHECK(r.signs == Signs{1, -1, 1, 1});
  CHECK(r.fails == std::vector<std::int32_t>{1});
}

TEST_CASE("balance walk: the shift is taken off the exponent") {
  Walk op = one_block({{1}, {1}, {2}, {-1}}, 0.8f, {0.4, 0.35, 0.45, 0.48});
  op.shift = column<float>(ref(), {3 * kLn2});  // all of K an eighth, the step eight times 0.1

  CHECK(run(op).signs == Signs{1, -1, 1, -1});
}

TEST_CASE("balance walk: blocks have walks, shifts and steps of their own; an empty block has no rows and no fails") {
  Walk op = one_block({{1}, {1}, {1}, {1}}, 0, {0.4, 0.35, 0.4, 0.35});
  op.starts = column<std::int32_t>(ref(), {0, 2, 2, 4});
  op.shift = column<float>(ref(), {0, 0, kLn2});
  op.step = column<float>(ref(), {0.1f, 0.1f, 0.1f});

  const Result r = run(op);

  CHECK(r.signs == Signs{1, -1, 1, 1});  // chances 0.3 and 0.5 - 0.1 * 2/2 = 0.4
  CHECK(r.fails == std::vector<std::int32_t>{0, 0, 0});
}

TEST_CASE("balance walk: values, their weights and the offset multiply the kernel") {
  Walk op = one_block({{0}, {0}, {0}}, 0.0625f, {0.4, 0.32, 0.45});
  op.values = matrix<float>(ref(), {{1}, {2}, {-1}});
  op.value_offset = 1;
  // K(1,0) = 3, K(2,0) = 0, K(2,1) = -1: chances 0.5, 0.3125, 0.5 - 0.0625
  CHECK(run(op).signs == Signs{1, -1, -1});

  op.weights = column<float>(ref(), {1, 2, 0.5f});
  // K(1,0) = 5, K(2,0) = 0.5, K(2,1) = -1: chances 0.5, 0.1875, 0.5 - 0.09375
  op.uniforms = column<double>(ref(), {0.4, 0.2, 0.41});
  CHECK(run(op).signs == Signs{1, -1, -1});
  op.uniforms = column<double>(ref(), {0.4, 0.18, 0.6});
  CHECK(run(op).signs == Signs{1, 1, -1});  // K(2,0) + K(2,1) = -0.5: the chance is 0.53
}

TEST_CASE("balance walk: the centre is the sum of the block's keys over the given count") {
  Walk op = one_block({{3}, {1}}, 0.25f, {0.4, 0.3});
  CHECK(run(op).signs == Signs{1, -1});  // 2^3 / 4 = 2

  op.centre = 2;  // keys 1 and -1: K = 1/2, the chance 0.375
  CHECK(run(op).signs == Signs{1, 1});
  op.centre = 4;  // keys 2 and 0: K = 1, the chance 0.25
  CHECK(run(op).signs == Signs{1, -1});
}

TEST_CASE("balance walk: greedy takes the sign against the sum, + where it is 0, and never fails") {
  Walk op = one_block({{1}, {1}, {2}, {-1}}, 0, {});
  op.greedy = true;
  op.uniforms = {};
  op.step = {};

  const Result r = run(op);

  CHECK(r.signs == Signs{1, -1, 1, -1});
  CHECK(r.fails == std::vector<std::int32_t>{0});
}

TEST_CASE("balance walk: the first row of each block may be fixed to +") {
  Walk op = one_block({{1}, {1}}, 0.1f, {0.9, 0.35});
  CHECK(run(op).signs == Signs{-1, 1});

  op.first_positive = true;
  CHECK(run(op).signs == Signs{1, -1});
}

// Pair 0: s = 0. Pair 1: (2 - 4) - (1 - 1) = -2, chance 0.7. The odd last row: 2 - 1 + 2 - 4 = -1, chance 0.6.
TEST_CASE("balance walk: pairs get opposite signs, an odd last row walks alone") {
  Walk op = one_block({{1}, {0}, {1}, {2}, {1}}, 0.1f, {0.4, 0.99, 0.6, 0.99, 0.55});
  op.pairs = true;

  CHECK(run(op).signs == Signs{1, -1, 1, -1, 1});
  op.uniforms = column<double>(ref(), {0.4, 0, 0.69, 0, 0.61});
  CHECK(run(op).signs == Signs{1, -1, 1, -1, -1});
  op.uniforms = column<double>(ref(), {0.4, 0, 0.71, 0, 0.5});
  CHECK(run(op).signs == Signs{1, -1, -1, 1, -1});  // 2 - 1 - 2 + 4 = 3, chance 0.2
}
