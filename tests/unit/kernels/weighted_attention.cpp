// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "literals.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

struct State {
  Buffer<float> max, den, num;
};

State empty_state(Index rows, Index dv) {
  State s = {ref().allocate<float>(rows), ref().allocate<float>(rows), ref().allocate<float>(rows, dv)};
  ref().fill(s.max, -kInfinity);
  ref().fill(s.den, 0.0f);
  ref().fill(s.num, 0.0f);
  return s;
}

/// One query of one head with logits ln 1, ln 2, ln 4 for tokens 0, 1, 2 and values 1, 10, 100.
kernels::WeightedAttention<Buffer> example(const State& s) {
  kernels::WeightedAttention<Buffer> op;
  op.queries = matrix<float>(ref(), {{std::log(2.0f)}});
  op.first = column<std::int32_t>(ref(), {0});
  op.last = column<std::int32_t>(ref(), {3});
  op.keys = matrix<float>(ref(), {{0}, {1}, {2}});
  op.values = matrix<float>(ref(), {{1}, {10}, {100}});
  op.ids = matrix<std::int32_t>(ref(), {{2, -1, 0}});
  op.max = s.max;
  op.den = s.den;
  op.num = s.num;
  return op;
}

}  // namespace

TEST_CASE("entries add to numerator and denominator relative to the running maximum") {
  const State s = empty_state(1, 1);
  auto op = example(s);
  op.logits = ref().allocate<float>(1, 3);

  ref().run(op);

  check_near(ref().read(s.max), {std::log(4.0f)});
  check_near(ref().read(s.den), {1.25f});    // (4 + 1) / 4
  check_near(ref().read(s.num), {100.25f});  // (4*100 + 1*1) / 4
  check_near(ref().read(op.logits), {std::log(4.0f), -kInfinity, 0});
}

TEST_CASE("a second call continues the state") {
  const State s = empty_state(1, 1);
  auto op = example(s);
  op.ids = matrix<std::int32_t>(ref(), {{0, 1}});
  ref().run(op);
  op.ids = matrix<std::int32_t>(ref(), {{2}});
  ref().run(op);

  check_near(ref().read(s.max), {std::log(4.0f)});
  check_near(ref().read(s.den), {1.75f});
  check_near(ref().read(s.num), {105.25f});
}

TEST_CASE("numerator and denominator have weights of their own") {
  const State s = empty_state(1, 1);
  auto op = example(s);
  op.weight_num = matrix<float>(ref(), {{0.5f, 9, 2}});
  op.weight_den = matrix<float>(ref(), {{0, 9, 3}});

  ref().run(op);

  check_near(ref().read(s.den), {0.75f});  // (0*4 + 3*1) / 4
  check_near(ref().read(s.num), {50.5f});  // (0.5*4*100 + 2*1*1) / 4
}

TEST_CASE("tokens outside the query's range are skipped; own keys and values replace the tokens'") {
  const State s = empty_state(1, 1);
  auto op = example(s);
  op.last = column<std::int32_t>(ref(), {2});
  op.own_keys = matrix<float>(ref(), {{5}, {6}, {3}});
  op.own_values = matrix<float>(ref(), {{7}, {7}, {-2}});

  ref().run(op);

  check_near(ref().read(s.max), {std::log(8.0f)});
  check_near(ref().read(s.den), {1});
  check_near(ref().read(s.num), {-2});
}

TEST_CASE("given scores are read instead of recomputing") {
  const State s = empty_state(1, 1);
  auto op = example(s);
  op.scores = matrix<float>(ref(), {{0, 0, 0}});

  ref().run(op);

  check_near(ref().read(s.den), {2});
  check_near(ref().read(s.num), {101});
}

TEST_CASE("tables per head and per query") {
  const struct {
    bool per_head, per_query;
    std::vector<std::int32_t> ids;
    std::vector<float> num;
  } cases[] = {{false, false, {1}, {10, 10, 10, 10}},
               {true, false, {0, 1}, {1, 1, 10, 10}},
               {false, true, {0, 1}, {1, 10, 1, 10}},
               {true, true, {0, 1, 2, -1}, {1, 10, 100, 0}}};
  for (const auto& c : cases) {
    const State s = empty_state(4, 1);
    auto op = example(s);
    op.queries = matrix<float>(ref(), {{0}, {0}, {0}, {0}});
    op.first = column<std::int32_t>(ref(), {0, 0});
    op.last = column<std::int32_t>(ref(), {3, 3});
    op.group = 2;
    op.per_head = c.per_head;
    op.per_query = c.per_query;
    op.ids = column(ref(), c.ids);

    ref().run(op);

    check_near(ref().read(s.num), c.num);
  }
}

TEST_CASE("a row whose slots are all skipped keeps its state") {
  const State s = empty_state(1, 1);
  auto op = example(s);
  op.ids = matrix<std::int32_t>(ref(), {{-1, -1}});

  ref().run(op);

  check_near(ref().read(s.max), {-kInfinity});
  check_near(ref().read(s.den), {0});
  check_near(ref().read(s.num), {0});
}
