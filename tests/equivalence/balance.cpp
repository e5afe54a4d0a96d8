// SPDX-License-Identifier: Apache-2.0
// A walk is a cascade: one sign that falls on the other side changes all sums after it. So each sign is judged against
// the sum of the signs that the same walk drew before it, formed here in fp64; it may be on the wrong side only where
// the margin of its decision is within the tolerance. Where reference and back end both pass, they first differ at such
// a margin.
#include <algorithm>

#include "prefilters.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

struct Problem {
  Index n, d, dv = 0;
  std::vector<std::int32_t> starts;
  float deviation = 1;  // of the keys
  std::vector<float> keys, values, weights, shift, step;
  float scale = 0.3f, value_offset = 0;
  Index centre = 0;
  bool greedy = false, first_positive = false, pairs = false;
  std::vector<double> uniforms;
};

struct Walked {
  std::vector<std::int32_t> signs, fails;
};

Walked run(Backend& b, const Problem& p) {
  const auto blocks = static_cast<Index>(p.starts.size()) - 1;
  const auto signs = b.allocate<std::int32_t>(p.n);
  const auto fails = b.allocate<std::int32_t>(blocks);
  kernels::BalanceWalk<Buffer> op{.keys = b.adopt(p.keys, p.n, p.d),
                                  .starts = b.adopt(p.starts, blocks + 1),
                                  .shift = b.adopt(p.shift, blocks),
                                  .scale = p.scale,
                                  .value_offset = p.value_offset,
                                  .centre = p.centre,
                                  .greedy = p.greedy,
                                  .first_positive = p.first_positive,
                                  .pairs = p.pairs,
                                  .signs = signs,
                                  .fails = fails};
  if (p.dv > 0) op.values = b.adopt(p.values, p.n, p.dv);
  if (!p.weights.empty()) op.weights = b.adopt(p.weights, p.n);
  if (!p.greedy) op.step = b.adopt(p.step, blocks);
  if (!p.greedy) op.uniforms = b.adopt(p.uniforms, p.n);
  b.run(op);
  return {b.read(signs), b.read(fails)};
}

std::size_t at(Index i) { return static_cast<std::size_t>(i); }

/// log |K(i, j)| + shift and the factor of the values, in fp64.
struct Pair {
  double exponent, factor;
};

Pair pair_of(const Problem& p, const std::vector<double>& centre, Index i, Index j) {
  double logit = 0, factor = 0;
  for (Index c = 0; c < p.d; ++c)
    logit += (p.keys[at(i * p.d + c)] - centre[at(c)]) * (p.keys[at(j * p.d + c)] - centre[at(c)]);
  for (Index c = 0; c < p.dv; ++c)
    factor += static_cast<double>(p.values[at(i * p.dv + c)]) * p.values[at(j * p.dv + c)];
  if (!p.weights.empty()) factor *= static_cast<double>(p.weights[at(i)]) * p.weights[at(j)];
  return {static_cast<double>(p.scale) * logit, p.dv == 0 ? 1 : factor + p.value_offset};
}

struct Judgement {
  Index wrong = 0;        // decisions on the wrong side of a margin above the tolerance
  Index close = 0;        // decisions within it
  Index least_fails = 0;  // certain whatever the rounding
  Index most_fails = 0;
};

void judge_block(const Problem& p, const std::vector<std::int32_t>& signs, Index block, double tolerance,
                 Judgement& result) {
  const Index begin = p.starts[at(block)], end = p.starts[at(block + 1)];
  std::vector<double> centre(at(p.d));
  for (Index i = begin; i < end && p.centre > 0; ++i)
    for (Index c = 0; c < p.d; ++c) centre[at(c)] += p.keys[at(i * p.d + c)] / static_cast<double>(p.centre);
  for (Index i = begin; i < end; i += p.pairs ? 2 : 1) {
    const Index rows = p.pairs && i + 1 < end ? 2 : 1;
    double sum = 0, size = 0;
    for (Index j = begin; j < i; ++j)
      for (Index r = 0; r < rows; ++r) {
        const Pair pair = pair_of(p, centre, i + r, j);
        const double value =
            (r == 0 ? 1 : -1) * signs[at(j)] * std::exp(pair.exponent - p.shift[at(block)]) * pair.factor;
        sum += value;
        size += std::abs(value);
      }
    if (rows == 2 && signs[at(i + 1)] != -signs[at(i)]) ++result.wrong;
    const double step = p.greedy ? 1 : p.step[at(block)];
    const double error = tolerance * step * size + (p.greedy ? 0 : 1e-9);
    if (!p.greedy && std::abs(step * sum) > 0.5 - error) ++result.most_fails;
    if (!p.greedy && std::abs(step * sum) > 0.5 + error) ++result.least_fails;
    if ((p.first_positive || p.greedy) && i == begin) {
      if (signs[at(i)] != 1) ++result.wrong;
      continue;
    }
    const double margin = p.greedy ? -sum : 0.5 - step * sum - p.uniforms[at(i)];
    if (std::abs(margin) <= error)
      ++result.close;
    else if (signs[at(i)] != (margin > 0 ? 1 : -1))
      ++result.wrong;
  }
}

void check_walked(const Problem& p, const Walked& walked, double tolerance) {
  REQUIRE(walked.signs.size() == at(p.n));
  Judgement all;
  for (Index block = 0; block + 1 < static_cast<Index>(p.starts.size()); ++block) {
    Judgement one;
    judge_block(p, walked.signs, block, tolerance, one);
    CHECK(walked.fails[at(block)] >= one.least_fails);
    CHECK(walked.fails[at(block)] <= one.most_fails);
    all.wrong += one.wrong;
    all.close += one.close;
  }
  CHECK(all.wrong == 0);
  CHECK(all.close <= 2 + p.n / 50);  // else nothing would be tested (the first row of a greedy walk is always close)
  for (const std::int32_t sign : walked.signs) CHECK(std::abs(sign) == 1);
}

void check_problem(const Problem& p, double tolerance = 2e-5) {
  CAPTURE(p.n);
  CAPTURE(p.d);
  CAPTURE(p.dv);
  CAPTURE(p.pairs);
  CAPTURE(p.greedy);
  CAPTURE(p.centre);
  check_walked(p, run(*make_ref_backend(), p), tolerance);
  for_each_backend([&](Backend& b) { check_walked(p, run(b, p), tolerance); });
}

Problem problem(Index n, Index d, std::vector<std::int32_t> starts, float deviation = 1) {
  const auto blocks = static_cast<Index>(starts.size()) - 1;
  Problem p{
      .n = n, .d = d, .starts = std::move(starts), .deviation = deviation, .keys = Random().normal(n * d, deviation)};
  p.shift = Random(5).normal(blocks, 0.3f);
  p.step.assign(at(blocks), 0.02f);
  std::mt19937 engine(6);
  std::uniform_real_distribution<double> uniform;
  for (Index i = 0; i < n; ++i) p.uniforms.push_back(uniform(engine));
  return p;
}

void add_values(Problem& p, Index dv, bool weights) {
  p.dv = dv;
  p.values = Random(8).normal(p.n * dv);
  p.value_offset = 0.7f;
  if (!weights) return;
  p.weights = Random(9).normal(p.n);
  for (float& w : p.weights) w = 0.5f + std::abs(w);
}

}  // namespace

TEST_CASE("balance walks decide as the reference does at every size") {
  for (Index n : {1, 2, 3, 15, 16, 17, 31, 32, 33, 64, 65, 255, 257, 600}) {
    if (n > sized(n, 100)) continue;
    for (Index d : {1, 3, 16}) check_problem(problem(n, d, {0, static_cast<std::int32_t>(n)}));
  }
  check_problem(problem(0, 4, {0}));
  check_problem(problem(0, 4, {0, 0}));
}

TEST_CASE("balance walks: blocks of any size, empty ones too") {
  check_problem(problem(500, 8, {0, 0, 1, 3, 40, 40, 296, 500, 500}));
}

TEST_CASE("balance walks: every option, alone and together") {
  for (const bool pairs : {false, true})
    for (const bool greedy : {false, true})
      for (const bool first_positive : {false, true})
        for (Index centre : {0, 100, 128})
          for (int values : {0, 1, 2}) {
            const auto first = static_cast<std::int32_t>(sized(100, 34)),
                       large = static_cast<std::int32_t>(sized(300, 50));
            Problem p = problem(large + 11, 7, {0, first, first + 1, large, large + 11}, 0.8f);
            p.pairs = pairs;
            p.greedy = greedy;
            p.first_positive = first_positive;
            p.centre = centre;
            if (values > 0) add_values(p, 5, values == 2);
            check_problem(p);
          }
}

TEST_CASE("balance walks: a step so large that most signs are forced") {
  Problem p = problem(300, 8, {0, 300});
  p.step = {1};
  check_problem(p);
}

TEST_CASE("balance walks: exponents beyond fp32, above and below") {
  for (const bool greedy : {false, true})
    for (const bool pairs : {false, true})
      for (float deviation : {4.0f, 7.0f, 12.0f}) {
        const Index n = sized(300, 40);
        Problem p = problem(n, 8, {0, static_cast<std::int32_t>(n)}, deviation);
        p.greedy = greedy;
        p.pairs = pairs;
        // exp(scale |k|^2 - shift) would reach e^500, and most pairs lie below e^-100
        for (float shift : {0.0f, 80.0f}) {
          p.shift = {shift};
          for (float step : {1e-30f, 1.0f, 1e30f}) {
            p.step = {step};
            CAPTURE(deviation);
            CAPTURE(step);
            check_problem(p, 5e-4);
          }
        }
      }
}

TEST_CASE("balance walks: signs of a block do not depend on its neighbours") {
  const auto n = static_cast<std::int32_t>(sized(700, 400));
  const Problem p = problem(n, 16, {0, 33, 300, n});
  for_each_backend([&](Backend& b) {
    const Walked all = run(b, p);
    for (std::size_t block = 0; block < 3; ++block) {
      const Index begin = p.starts[block], count = p.starts[block + 1] - begin;
      Problem one = problem(count, 16, {0, static_cast<std::int32_t>(count)});
      one.keys.assign(p.keys.begin() + begin * 16, p.keys.begin() + (begin + count) * 16);
      one.uniforms.assign(p.uniforms.begin() + begin, p.uniforms.begin() + begin + count);
      one.shift = {p.shift[block]};
      const Walked alone = run(b, one);
      CHECK(std::equal(alone.signs.begin(), alone.signs.end(), all.signs.begin() + begin));
      CHECK(alone.fails[0] == all.fails[block]);
    }
  });
}

TEST_CASE("balance walks: the prefilter changes no sign") {
  if (steps_are_slow()) return;  // host code, which equivalence_cpu checks
  const auto check_same = [](const Problem& p) {
    for_each_prefilter([&](Backend& plain, Backend& prefiltered) {
      const Walked expected = run(plain, p), actual = run(prefiltered, p);
      CHECK(actual.signs == expected.signs);
      CHECK(actual.fails == expected.fails);
    });
  };
  for (const Index d : {1, 7, 64, 128})
    for (const int values : {0, 1, 2})
      for (const bool pairs : {false, true})
        for (const float step : {0.0f, 1e-4f, 1e-2f, 1.0f, 1e30f}) {
          CAPTURE(d);
          CAPTURE(values);
          CAPTURE(pairs);
          CAPTURE(step);
          Problem p = problem(913, d, {0, 1, 34, 257, 257, 913}, 2 / std::sqrt(static_cast<float>(d)));
          p.step.assign(p.step.size(), step);
          p.pairs = pairs;
          p.centre = pairs ? 0 : 300;
          if (values > 0) add_values(p, 5, values == 2);
          check_same(p);
          for (float& key : p.keys) key *= 20;  // exponents of several hundred
          check_same(p);
        }
}

namespace {

/// A walk whose rows are all +1 but for the last of them, which is -1 because of its sum `largest`: with u = 0 a row is
/// +1, as 0 < 1/2 - step s while step s < 1/2. The last u = 1/2 - 0.999 step s lies above 1/2 - step s. Were the bound
/// of s smaller than 0.999 s, the row would be taken for +1, as u < 1/2.
void check_last(Problem p, double largest) {
  CAPTURE(p.n);
  CAPTURE(p.d);
  const Index last = p.pairs ? p.n - 2 : p.n - 1;
  p.step[0] = static_cast<float>(0.4 / largest);
  p.uniforms.assign(at(p.n), 0);
  p.uniforms[at(last)] = 0.5 - 0.999 * static_cast<double>(p.step[0]) * largest;
  std::vector<std::int32_t> expected(at(p.n), 1);
  for (Index i = 1; p.pairs && i < p.n; i += 2) expected[at(i)] = -1;
  expected[at(last)] = -1;
  if (p.pairs) expected[at(last + 1)] = 1;
  const auto check = [&](Backend& b) { CHECK(run(b, p).signs == expected); };
  for_each_backend(check);
  if (!steps_are_slow()) for_each_prefilter([&](Backend&, Backend& prefiltered) { check(prefiltered); });
}

/// n times the same row.
std::vector<float> repeated(const std::vector<float>& row, Index n) {
  std::vector<float> rows;
  for (Index i = 0; i < n; ++i) rows.insert(rows.end(), row.begin(), row.end());
  return rows;
}

/// As 8-bit integers (127, 126, 126, ...) times 1/127: all errors have one sign, so that products have nearly the
/// largest possible error.
std::vector<float> hard_row(Index d, float sign) {
  std::vector<float> row(at(d), sign * 126.49f / 127);
  row[0] = sign;
  return row;
}

}  // namespace

TEST_CASE("balance walks: a sum as large as its bound decides") {
  for (const Index n : {2, 17, 33, 40, 256, 300, 700})
    for (const Index d : {1, 16, 65})
      for (const int kind : {0, 1, 2, 3}) {
        if (n > sized(n, 40)) continue;
        // All keys are the same k and all values the same v: s = (n - 1) K.
        CAPTURE(kind);
        Problem p = problem(n, d, {0, static_cast<std::int32_t>(n)});
        p.keys = repeated(kind < 2 ? Random().normal(d) : hard_row(d, kind == 2 ? 1.0f : -1.0f), n);
        if (kind == 1) add_values(p, 5, false);
        if (kind == 1) p.values = repeated(Random(8).normal(5), n);
        if (kind > 1) p.scale = 50 / static_cast<float>(d);
        if (kind > 1) p.shift = {45};
        const Pair pair = pair_of(p, std::vector<double>(at(d)), 0, 0);
        check_last(
            p, static_cast<double>(n - 1) * std::exp(pair.exponent - static_cast<double>(p.shift[0])) * pair.factor);
      }
}

TEST_CASE("balance walks: the sum of a pair's second row decides") {
  for (const Index n : {4, 34, 300}) {
    if (n > sized(n, 40)) continue;
    // Keys 0, k, 0, k, ... with signs +, -, +, -: the sum of a first row is 0, that of the last row (n / 2 - 1)
    // (e^-shift - K).
    Problem p = problem(n, 16, {0, static_cast<std::int32_t>(n)});
    for (Index i = 0; i < n * 16; ++i) p.keys[at(i)] = i / 16 % 2 == 0 ? 0.0f : 1.0f;
    p.pairs = true;
    p.shift = {2};
    check_last(p, static_cast<double>(n / 2 - 1) * (std::exp(0.3f * 16.0 - 2) - std::exp(-2.0)));
  }
}
