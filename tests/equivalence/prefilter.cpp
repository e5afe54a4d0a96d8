// SPDX-License-Identifier: Apache-2.0
// Searches with a prefilter have the same bits as searches without one, on every kind of input.
#include <algorithm>
#include <array>

#include "best_match.hpp"
#include "leader_clusters.hpp"
#include "prefilters.hpp"
#include "row_kinds.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

using Problem = MatchProblem;

void check_same(const Problem& p) {
  CAPTURE(p.n);
  CAPTURE(p.c);
  CAPTURE(p.d);
  for_each_prefilter([&](Backend& plain, Backend& prefiltered) {
    const Matches expected = matches(plain, p), actual = matches(prefiltered, p);
    CHECK(actual.best == expected.best);
    CHECK(same_bits(actual.score, expected.score));
  });
}

/// -|c|^2 / 2 of each candidate.
std::vector<float> minus_half_norms(const std::vector<float>& rows, Index count, Index d) {
  std::vector<float> bias;
  for (Index i = 0; i < count; ++i) {
    double norm2 = 0;
    for (Index c = 0; c < d; ++c) norm2 += std::pow(static_cast<double>(rows[static_cast<std::size_t>(i * d + c)]), 2);
    bias.push_back(static_cast<float>(-norm2 / 2));
  }
  return bias;
}

/// Chunks of points see chunks of candidates; inside the third chunk every point has a range of its own.
void add_ranges(Problem& p) {
  p.first = Random(5).integers(p.n, 0, static_cast<std::int32_t>(p.c));
  p.last = Random(6).integers(p.n, 0, static_cast<std::int32_t>(p.c));
  for (Index i = 0; i < p.n; ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (i / 64 % 3 == 2) continue;
    p.first[k] = static_cast<std::int32_t>(std::min(p.c, i / 64 * 75));
    p.last[k] = static_cast<std::int32_t>(std::min(p.c, i / 64 * 75 + 75));
  }
}

void check_same_clusters(const std::vector<float>& points, Index n, Index d, float radius, Index capacity,
                         Index block) {
  CAPTURE(d);
  CAPTURE(radius);
  CAPTURE(capacity);
  CAPTURE(block);
  for_each_prefilter([&](Backend& plain, Backend& prefiltered) {
    const Clusters expected = clusters(plain, points, n, d, radius, capacity, block);
    const Clusters actual = clusters(prefiltered, points, n, d, radius, capacity, block);
    CHECK(actual.labels == expected.labels);
    CHECK(actual.count == expected.count);
    CHECK(same_bits(actual.representatives, expected.representatives));
  });
}

/// Of the first two rows; 1 where that is no number to go by.
float first_distance(const std::vector<float>& rows, Index d) {
  double distance2 = 0;
  for (std::size_t c = 0; c < static_cast<std::size_t>(d); ++c)
    distance2 += std::pow(static_cast<double>(rows[c]) - rows[c + static_cast<std::size_t>(d)], 2);
  const auto distance = static_cast<float>(std::sqrt(distance2));
  return std::isfinite(distance) && distance > 0 ? distance : 1;
}

}  // namespace

TEST_CASE("prefiltered best match: the same bits for every kind of rows") {
  for (const Kind& kind : kinds) {
    CAPTURE(kind.name);
    for (const auto& [n, c, d] : {std::array<Index, 3>{300, 409, 64}, {33, 2100, 128}, {70, 257, 37}}) {
      Problem p{.n = n, .c = c, .d = d, .points = kind.rows(n, d, 42), .candidates = kind.rows(c, d, 7)};
      check_same(p);
      p.bias = minus_half_norms(p.candidates, c, d);
      check_same(p);
      p.skip_self = true;
      add_ranges(p);
      check_same(p);
      p.bias.clear();
      check_same(p);
    }
  }
}

TEST_CASE("prefiltered best match: the same bits for every shape") {
  for (const Index n : {0, 1, 31, 32, 257})
    for (const Index c : {0, 1, 7, 8, 9, 130})
      for (const Index d : {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 200}) {
        Problem p{.n = n, .c = c, .d = d, .points = normal(n, d, 42), .candidates = normal(c, d, 7)};
        check_same(p);
        p.bias = Random(3).normal(c);
        p.skip_self = true;
        check_same(p);
        add_ranges(p);
        check_same(p);
      }
}

TEST_CASE("prefiltered best match: the same bits where points equal candidates, and lie far from them") {
  const Index n = 500, d = 80;
  for (const Kind& kind : kinds) {
    CAPTURE(kind.name);
    const auto rows = kind.rows(n, d, 42);
    check_same({.n = n, .c = n, .d = d, .points = rows, .candidates = rows});
    check_same({.n = n, .c = n, .d = d, .points = rows, .candidates = rows, .skip_self = true});
    auto far = rows;
    for (float& x : far) x = 1000 + 3 * x;
    check_same({.n = n, .c = n, .d = d, .points = far, .candidates = rows});
    check_same({.n = n, .c = n, .d = d, .points = rows, .candidates = far, .bias = minus_half_norms(far, n, d)});
  }
}

TEST_CASE("prefiltered best match: the same bits where rounding decides, not the rows") {
  // Products near 1e10 d are multiples of 1024 or more, and the scores of exact arithmetic differ by less.
  const Index n = 200, d = 64;
  auto points = normal(n, d, 42), candidates = normal(n, d, 7);
  for (std::vector<float>* rows : {&points, &candidates})
    for (float& x : *rows) x = 1e5f + x;
  check_same({.n = n, .c = n, .d = d, .points = points, .candidates = candidates});
  check_same({.n = n, .c = n, .d = d, .points = points, .candidates = points, .skip_self = true});
}

TEST_CASE("prefiltered best match: the same bits with dominant biases, or biases that are not finite") {
  const Index n = 100, c = 300, d = 64;
  for (const float factor : {1e-20f, 1.0f, 1e6f, 1e30f, kInfinity}) {
    CAPTURE(factor);
    Problem p{
        .n = n, .c = c, .d = d, .points = normal(n, d, 42), .candidates = normal(c, d, 7), .bias = Random(3).normal(c)};
    for (float& b : p.bias) b *= factor;
    check_same(p);
    p.bias[17] = std::numeric_limits<float>::quiet_NaN();
    check_same(p);
  }
}

namespace {

/// Replaces candidates: most of them in the first steps, then every ninth, then one, then none, then all.
std::vector<std::int32_t> move(Problem& p, int step, const Kind& kind) {
  const auto others = kind.rows(p.c, p.d, static_cast<std::uint32_t>(100 + step));
  const auto other_bias = Random(static_cast<std::uint32_t>(200 + step)).normal(p.c);
  std::vector<std::int32_t> moved;
  for (Index i = 0; i < p.c; ++i) {
    const bool now = step < 2 ? i % 4 != step : step == 2 ? i % 9 == 4 : step == 3 ? i == p.c / 2 : step == 5;
    moved.push_back(now ? 1 : 0);
    if (!now) continue;
    std::copy_n(others.begin() + i * p.d, p.d, p.candidates.begin() + i * p.d);
    if (!p.bias.empty()) p.bias[static_cast<std::size_t>(i)] = other_bias[static_cast<std::size_t>(i)];
  }
  return moved;
}

/// Repeated searches on `b`, while candidates move, have the same results as new searches on `plain`.
void check_repeated(Backend& plain, Backend& b, Problem p, const Kind& kind) {
  CAPTURE(p.n);
  CAPTURE(p.c);
  CAPTURE(p.d);
  const auto state = b.make_match_state(p.n, p.d);
  const auto best = b.allocate<std::int32_t>(p.n);
  for (int step = -1; step < 6; ++step) {
    CAPTURE(step);
    kernels::BestMatch<Buffer> op{.points = b.adopt(p.points, p.n, p.d), .state = state.get(), .best = best};
    if (step >= 0) op.moved = b.adopt(move(p, step, kind), p.c);
    op.candidates = b.adopt(p.candidates, p.c, p.d);
    if (!p.bias.empty()) op.bias = b.adopt(p.bias, p.c);
    b.run(op);
    CHECK(b.read(best) == matches(plain, p).best);
  }
}

}  // namespace

TEST_CASE("best match repeated while candidates move: the same labels for every kind of rows and every shape") {
  const auto check = [](Backend& plain, Backend& b) {
    for (const Kind& kind : kinds) {
      CAPTURE(kind.name);
      for (const auto& [n, c, d] : {std::array<Index, 3>{300, 409, 64}, {33, 2100, 128}, {70, 257, 37}, {1, 9, 3}}) {
        Problem p{.n = n, .c = c, .d = d, .points = kind.rows(n, d, 42), .candidates = kind.rows(c, d, 7)};
        check_repeated(plain, b, p, kind);
        p.bias = Random(3).normal(c);
        check_repeated(plain, b, p, kind);
      }
    }
  };
  for_each_prefilter([&](Backend& plain, Backend& prefiltered) {
    check(plain, plain);
    check(plain, prefiltered);
  });
}

TEST_CASE("best match repeated: none of no points, -1 of no candidates") {
  for_each_prefilter([](Backend& plain, Backend& b) {
    check_repeated(plain, b, {.n = 0, .c = 9, .d = 4, .candidates = normal(9, 4, 7)}, kinds[0]);
    check_repeated(plain, b, {.n = 40, .c = 0, .d = 4, .points = normal(40, 4, 42)}, kinds[0]);
  });
}

TEST_CASE("prefiltered leader clusters: the same bits for every kind of rows") {
  for (const Kind& kind : kinds) {
    CAPTURE(kind.name);
    const Index n = 900;
    for (const Index d : {3, 37, 64}) {
      const auto points = kind.rows(n, d, 42);
      const float distance = first_distance(points, d);
      for (const float radius : {0.0f, 0.8f * distance, distance, 2 * distance}) {
        check_same_clusters(points, n, d, radius, n, n);
        check_same_clusters(points, n, d, radius, n, 300);
        check_same_clusters(points, n, d, radius, 100, 257);
      }
    }
  }
}

namespace {

/// Calls check(ref, backend) for the back ends of every instruction set, with prefilters wherever they can be used.
template <class F>
void for_each_against_reference(F check) {
  const auto ref = make_ref_backend();
  for_each_backend([&](Backend& b) { check(*ref, b); });
  for_each_prefilter([&](Backend& plain, Backend& prefiltered) {
    check(*ref, plain);
    check(*ref, prefiltered);
  });
}

void check_reference(const Problem& p) {
  for_each_against_reference([&](Backend& ref, Backend& b) {
    const Matches expected = matches(ref, p), actual = matches(b, p);
    CHECK(actual.best == expected.best);
    CHECK(same_bits(actual.score, expected.score));
  });
}

/// Rows that are to fool bounds, and whose scores and distances are exact in fp32.
const Kind fooling[] = {{"equally far", equally_far},
                        {"one huge coordinate", one_huge_coordinate},
                        {"last axis", last_axis},
                        {"repeated", repeated},
                        {"subnormal", [](Index n, Index d, std::uint32_t seed) {
                           auto rows = Random(seed).lattice(n * d, 2);
                           for (float& x : rows) x *= 0x1p-149f;
                           return rows;
                         }}};

}  // namespace

TEST_CASE("best match equals the reference, ties included, on rows that are to fool bounds") {
  const Index n = 90, c = sized(260, 120);
  for (const Kind& kind : fooling)
    for (const Index d : {32, 64, 130}) {
      CAPTURE(kind.name);
      CAPTURE(d);
      Problem p{.n = n, .c = c, .d = d, .candidates = Random(7).lattice(c * d, 2)};
      p.points = kind.rows(n, d, 42);
      check_reference(p);
      if (std::string(kind.name) == "subnormal") continue;  // products of two subnormal numbers are zero in fp32
      p.candidates = kind.rows(c, d, 7);
      p.points = Random(42).lattice(n * d, 1);
      check_reference(p);
      p.points = std::vector<float>(static_cast<std::size_t>(n * d), 1.0f);
      for (Index i = 0; i < n; ++i) at(p.points, d, i, d - 1) = 0;
      check_reference(p);
    }
}

TEST_CASE("clusters and centres equal the reference, ties included, on rows that are to fool bounds") {
  const Index n = sized(300, 100);
  for (const Kind& kind : fooling)
    for (const Index d : {32, 64, 130}) {
      if (kind.rows == one_huge_coordinate) continue;  // squares of its differences are not exact
      CAPTURE(kind.name);
      CAPTURE(d);
      const auto points = kind.rows(n, d, 42);
      const float distance = first_distance(points, d);
      for_each_against_reference([&](Backend& ref, Backend& b) {
        for (const float radius : {0.0f, 0.9f * distance, distance}) {
          CAPTURE(radius);
          const Clusters expected = clusters(ref, points, n, d, radius, n, n);
          CHECK(clusters(b, points, n, d, radius, n, n).labels == expected.labels);
          CHECK(clusters(b, points, n, d, radius, n, 64).labels == expected.labels);
        }
      });
    }
}
