// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <numeric>

#include "compare.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

struct Options {
  Index n, m, group, d, dv, width;
  bool per_head, per_query, weights, own_keys, own_values, scores;
  bool increasing = false;  ///< ids of a table row increase, unused slots come last
};

struct Problem {
  Options options;
  std::vector<float> queries, keys, values, scores, weight_num, weight_den, own_keys, own_values, max, den, num;
  std::vector<std::int32_t> first, last, ids;
};

struct Result {
  std::vector<float> max, den, num, logits;
};

Index table_rows(const Options& o) { return (o.per_head ? o.group : 1) * (o.per_query ? o.m : 1); }

float scale_of(const Options& o) { return 1 / std::sqrt(static_cast<float>(o.d)); }

float logit(const Problem& p, Index row, Index token) {
  const Index d = p.options.d;
  const auto query = p.queries.begin() + row * d, key = p.keys.begin() + token * d;
  return scale_of(p.options) * static_cast<float>(std::inner_product(query, query + d, key, 0.0));
}

/// Slots that increase, unused ones last.
void make_increasing(std::vector<std::int32_t>::iterator begin, std::vector<std::int32_t>::iterator end) {
  std::sort(begin, end, std::greater<>());
  const auto used = std::unique(begin, std::find(begin, end, -1));
  std::fill(used, end, -1);
  std::reverse(begin, used);
}

Problem make_problem(Options o) {
  Random random;
  const Index rows = o.group * o.m;
  const Index slots = table_rows(o) * o.width;
  Problem p = {o,
               random.normal(rows * o.d),
               random.normal(o.n * o.d),
               random.normal(o.n * o.dv),
               {},
               random.normal(slots),
               random.normal(slots),
               random.normal(slots * o.d),
               random.normal(slots * o.dv),
               random.normal(rows),
               random.normal(rows),
               random.normal(rows * o.dv),
               {},
               {},
               random.integers(slots, -1, static_cast<std::int32_t>(o.n) - 1)};
  for (Index r = 0; r < rows; ++r) {
    for (Index j = 0; j < o.n && o.scores; ++j) p.scores.push_back(logit(p, r, j));
  }
  for (float& weight : p.weight_den) weight = std::fabs(weight);
  for (float& den : p.den) den = std::fabs(den);
  for (std::size_t r = 0; r < p.max.size(); r += 2) {  // half of the rows start empty
    p.max[r] = -kInfinity;
    p.den[r] = 0;
    std::fill_n(p.num.begin() + static_cast<Index>(r) * o.dv, o.dv, 0.0f);
  }
  for (Index i = 0; i < o.m; ++i) {
    p.first.push_back(static_cast<std::int32_t>(i % 4 == 3 ? o.n / 2 : 0));
    p.last.push_back(static_cast<std::int32_t>(i == 2 ? 0 : o.n - i % 3));
  }
  for (Index table = 0; o.increasing && table < table_rows(o); ++table)
    make_increasing(p.ids.begin() + table * o.width, p.ids.begin() + (table + 1) * o.width);
  return p;
}

Result attend(Backend& backend, const Problem& p) {
  const Options& o = p.options;
  const Index rows = o.group * o.m;
  const Index tables = table_rows(o);
  kernels::WeightedAttention<Buffer> op;
  op.queries = backend.adopt(p.queries, rows, o.d);
  op.first = backend.adopt(p.first, o.m);
  op.last = backend.adopt(p.last, o.m);
  op.scale = scale_of(o);
  op.keys = backend.adopt(p.keys, o.n, o.d);
  op.values = backend.adopt(p.values, o.n, o.dv);
  if (o.scores) op.scores = backend.adopt(p.scores, rows, o.n);
  op.ids = backend.adopt(p.ids, tables, o.width);
  if (o.weights) op.weight_num = backend.adopt(p.weight_num, tables, o.width);
  if (o.weights) op.weight_den = backend.adopt(p.weight_den, tables, o.width);
  if (o.own_keys) op.own_keys = backend.adopt(p.own_keys, tables * o.width, o.d);
  if (o.own_values) op.own_values = backend.adopt(p.own_values, tables * o.width, o.dv);
  op.per_head = o.per_head;
  op.per_query = o.per_query;
  op.group = o.group;
  auto max = backend.adopt(p.max, rows);
  auto den = backend.adopt(p.den, rows);
  auto num = backend.adopt(p.num, rows, o.dv);
  op.max = max;
  op.den = den;
  op.num = num;
  op.logits = backend.allocate<float>(rows, o.width);
  backend.run(op);
  return {backend.read(max), backend.read(den), backend.read(num), backend.read(op.logits)};
}

void check_against_reference(const Options& options) {
  const Problem problem = make_problem(options);
  const Result expected = attend(*make_ref_backend(), problem);
  for_each_backend([&](Backend& backend) {
    const Result actual = attend(backend, problem);
    check_equivalent(actual.max, expected.max, "max");
    check_equivalent(actual.den, expected.den, "den");
    check_equivalent(actual.num, expected.num, "num");
    check_equivalent(actual.logits, expected.logits, "logits");
  });
}

}  // namespace

TEST_CASE("weighted attention equals the reference for every kind of table and entry") {
  for (unsigned flags = 0; flags < 64; ++flags) {
    CAPTURE(flags);
    const auto flag = [&](unsigned bit) { return (flags >> bit & 1u) != 0; };
    check_against_reference({90, 5, 3, 24, 20, 37, flag(0), flag(1), flag(2), flag(3), flag(4), flag(5)});
  }
}

TEST_CASE("weighted attention equals the reference at odd sizes") {
  const Index sizes[] = {0, 1, 7, 8, 9, 15, 16, 17, 33};
  for (Index width : {0, 1, 15, 16, 17, 255, 256, 257, 530})
    for (Index d : sizes)
      if (d > 0 && (width < 20 || d % 8 == 0)) {
        CAPTURE(width);
        CAPTURE(d);
        check_against_reference({600, 7, 1, d, d + 3, width, false, false, true, false, false, false});
        check_against_reference({600, 7, 1, d, d, width, true, true, false, false, false, true});
      }
}

TEST_CASE("weighted attention over increasing tokens of each query equals the reference") {
  for (unsigned flags = 0; flags < 4; ++flags) {
    CAPTURE(flags);
    const bool per_head = (flags & 1u) != 0, weights = (flags & 2u) != 0;
    // 5000 tokens of 64 columns are five blocks of values that fit the cache, 300 rows two groups of rows.
    check_against_reference(
        {sized(5000, 900), sized(100, 20), 3, 8, 64, 700, per_head, true, weights, false, false, true, true});
    check_against_reference({50, 7, 2, 8, 192, 90, per_head, true, weights, false, false, true, true});
  }
}

TEST_CASE("weighted attention of many rows to shared tokens near each other and far apart equals the reference") {
  for (Index n : {800, 20000})  // of 700 slots: most share a cache line with a neighbour, few do
    for (bool per_head : {false, true}) {
      CAPTURE(n);
      check_against_reference({n, 40, 2, 24, 64, 700, per_head, false, true, false, false, true, true});
    }
}
