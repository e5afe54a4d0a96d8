// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compare.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

struct Shape {
  Index n, m, group, d, dv;
};

struct Problem {
  Shape shape;
  std::vector<float> queries, keys, values;
  std::vector<std::int32_t> first, last;
};

struct Result {
  std::vector<float> out, max, log_sum_exp, scores;
};

/// Every third query has a sliding window, and the first sees nothing; the rest are a causal tail.
Problem make_problem(Shape s) {
  Random random;
  Problem p = {s, random.normal(s.group * s.m * s.d), random.normal(s.n * s.d), random.normal(s.n * s.dv), {}, {}};
  for (Index i = 0; i < s.m; ++i) {
    const Index end = std::clamp<Index>(s.n - s.m + i + 1, 0, s.n);
    p.last.push_back(static_cast<std::int32_t>(end));
    p.first.push_back(static_cast<std::int32_t>(i == 0 ? end : i % 3 == 0 ? std::max<Index>(end - 70, 0) : 0));
  }
  return p;
}

Result attend(Backend& backend, const Problem& p, bool keep_scores = true) {
  const auto [n, m, group, d, dv] = p.shape;
  kernels::ExactAttention<Buffer> op;
  op.queries = backend.adopt(p.queries, group * m, d);
  op.keys = backend.adopt(p.keys, n, d);
  op.values = backend.adopt(p.values, n, dv);
  op.first = backend.adopt(p.first, m);
  op.last = backend.adopt(p.last, m);
  op.scale = 1 / std::sqrt(static_cast<float>(d));
  op.out = backend.allocate<float>(group * m, dv);
  op.max = backend.allocate<float>(group * m);
  op.log_sum_exp = backend.allocate<float>(group * m);
  if (keep_scores) op.scores = backend.allocate<float>(group * m, n);
  backend.run(op);
  return {backend.read(op.out), backend.read(op.max), backend.read(op.log_sum_exp),
          keep_scores ? backend.read(op.scores) : std::vector<float>{}};
}

/// The problem of query i alone.
Problem only_query(const Problem& p, Index i) {
  Problem one = p;
  one.shape.m = 1;
  one.first = {p.first[static_cast<std::size_t>(i)]};
  one.last = {p.last[static_cast<std::size_t>(i)]};
  one.queries.clear();
  for (Index g = 0; g < p.shape.group; ++g) {
    const auto row = p.queries.begin() + (g * p.shape.m + i) * p.shape.d;
    one.queries.insert(one.queries.end(), row, row + p.shape.d);
  }
  return one;
}

}  // namespace

TEST_CASE("exact attention equals the reference") {
  const Shape shapes[] = {{0, 1, 1, 8, 8},       {1, 1, 1, 1, 1},      {1, 2, 1, 3, 5},         {7, 3, 2, 5, 7},
                          {8, 5, 1, 16, 16},     {15, 6, 1, 17, 31},   {16, 7, 2, 64, 64},      {17, 8, 1, 33, 32},
                          {31, 9, 1, 128, 128},  {33, 24, 1, 64, 65},  {255, 25, 1, 64, 64},    {256, 49, 1, 80, 96},
                          {257, 13, 3, 128, 64}, {700, 50, 2, 48, 40}, {1100, 64, 1, 128, 128}, {5, 0, 1, 8, 8}};
  const auto ref = make_ref_backend();
  for (const Shape& s : shapes) {
    CAPTURE(s.n);
    CAPTURE(s.d);
    const Problem problem = make_problem(s);
    const Result expected = attend(*ref, problem);
    for_each_backend([&](Backend& backend) {
      const Result actual = attend(backend, problem);
      check_equivalent(actual.out, expected.out, "out");
      check_equivalent(actual.max, expected.max, "max");
      check_equivalent(actual.log_sum_exp, expected.log_sum_exp, "log_sum_exp");
      check_equivalent(actual.scores, expected.scores, "scores");
    });
  }
}

TEST_CASE("exact attention: keeping the scores changes no bit") {
  const Problem problem = make_problem({600, 40, 2, 64, 64});
  for_each_backend([&](Backend& backend) {
    const Result with = attend(backend, problem, true);
    const Result without = attend(backend, problem, false);
    CHECK(same_bits(with.out, without.out));
    CHECK(same_bits(with.max, without.max));
    CHECK(same_bits(with.log_sum_exp, without.log_sum_exp));
  });
}

TEST_CASE("exact attention: a query's bits do not depend on the queries beside it") {
  const Problem problem = make_problem({1000, 40, 2, 64, 48});
  for_each_backend([&](Backend& backend) {
    const Result block = attend(backend, problem);
    for (Index i : {0, 1, 3, 17, 39}) {
      CAPTURE(i);
      const Result alone = attend(backend, only_query(problem, i));
      for (Index g = 0; g < problem.shape.group; ++g) {
        const Index row = g * problem.shape.m + i;
        const auto part = [](const std::vector<float>& all, Index r, Index width) {
          return std::vector<float>(all.begin() + r * width, all.begin() + (r + 1) * width);
        };
        CHECK(same_bits(part(alone.out, g, problem.shape.dv), part(block.out, row, problem.shape.dv)));
        CHECK(same_bits(part(alone.scores, g, problem.shape.n), part(block.scores, row, problem.shape.n)));
        CHECK(same_bits(part(alone.max, g, 1), part(block.max, row, 1)));
        CHECK(same_bits(part(alone.log_sum_exp, g, 1), part(block.log_sum_exp, row, 1)));
      }
    }
  });
}

TEST_CASE("exact attention survives large logits") {
  Problem problem = make_problem({300, 10, 1, 16, 16});
  for (float& x : problem.queries) x *= 100;
  const Result expected = attend(*make_ref_backend(), problem);
  for_each_backend([&](Backend& backend) {
    const Result actual = attend(backend, problem);
    check_equivalent(actual.max, expected.max, "max");
    for (float x : actual.out) CHECK(std::isfinite(x));
  });
}
