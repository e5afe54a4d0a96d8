// SPDX-License-Identifier: Apache-2.0
// Choices are compared exactly on points with whole coordinates, whose products are exact in fp32, ties included; on
// others a choice may differ where the two scores are closer than the tolerance.
#include <algorithm>

#include "best_match.hpp"

using namespace kvbench;
using namespace kvbench::test;

namespace {

using Problem = MatchProblem;

double score_of(const Problem& p, Index point, Index candidate) {
  double sum = p.bias.empty() ? 0 : p.bias[static_cast<std::size_t>(candidate)];
  for (Index k = 0; k < p.d; ++k)
    sum += static_cast<double>(p.points[static_cast<std::size_t>(point * p.d + k)]) *
           p.candidates[static_cast<std::size_t>(candidate * p.d + k)];
  return sum;
}

void check_matches(const Problem& p, bool exact) {
  CAPTURE(p.n);
  CAPTURE(p.c);
  CAPTURE(p.d);
  const Matches expected = matches(*make_ref_backend(), p);
  for_each_backend([&](Backend& b) {
    Matches actual = matches(b, p);
    check_equivalent(actual.score, expected.score, "score");
    for (std::size_t i = 0; i < actual.best.size() && !exact; ++i) {
      if (actual.best[i] < 0 || expected.best[i] < 0) continue;
      const double difference = score_of(p, static_cast<Index>(i), actual.best[i]) - expected.score[i];
      if (std::abs(difference) <= 1e-5 * std::fmax(1, std::abs(expected.score[i]))) actual.best[i] = expected.best[i];
    }
    check_equivalent(actual.best, expected.best, "best");
  });
}

Problem lattice(Index n, Index c, Index d, bool bias) {
  Problem p{.n = n, .c = c, .d = d, .points = Random().lattice(n * d, 2), .candidates = Random(7).lattice(c * d, 2)};
  if (bias) p.bias = Random(3).lattice(c, 2);
  return p;
}

/// A range for each point, some of them empty.
void add_ranges(Problem& p, std::uint32_t seed) {
  p.first = Random(seed).integers(p.n, 0, static_cast<std::int32_t>(p.c));
  p.last = Random(seed + 1).integers(p.n, 0, static_cast<std::int32_t>(p.c));
  for (std::size_t i = 0; i < p.first.size(); ++i)
    if (i % 7 != 0 && p.last[i] < p.first[i]) std::swap(p.first[i], p.last[i]);
}

/// Chunks as soft matching has them: runs of points share the candidates of their chunk.
void add_chunks(Problem& p, Index points, Index candidates) {
  for (Index i = 0; i < p.n; ++i) {
    const Index chunk = i / points;
    p.first.push_back(static_cast<std::int32_t>(std::min(p.c, chunk * candidates)));
    p.last.push_back(static_cast<std::int32_t>(std::min(p.c, (chunk + 1) * candidates)));
  }
}

std::vector<float> products(Backend& b, const std::vector<float>& a, Index m, const std::vector<float>& rows, Index n,
                            Index d) {
  const auto out = b.allocate<float>(m, n);
  b.run(kernels::InnerProducts<Buffer>{.a = b.adopt(a, m, d), .b = b.adopt(rows, n, d), .out = out});
  return b.read(out);
}

}  // namespace

TEST_CASE("best match equals the reference, ties included") {
  for (const bool bias : {false, true})
    for (Index n : {0, 1, 15, 33, 300})
      for (Index c : {0, 1, 5, 8, 41})
        for (Index d : {1, 2, 9}) check_matches(lattice(n, c, d, bias), true);
}

TEST_CASE("best match equals the reference where points see a range of the candidates") {
  for (Index n : {1, 31, 70, 301})
    for (Index c : {1, 7, 64, 130}) {
      Problem random = lattice(n, c, 3, true);
      add_ranges(random, 11);
      check_matches(random, true);

      Problem first_only = random;
      first_only.last.clear();
      check_matches(first_only, true);
      Problem last_only = random;
      last_only.first.clear();
      check_matches(last_only, true);

      for (Index points : {1, 5, 32, 64}) {
        Problem chunks = lattice(n, c, 3, false);
        add_chunks(chunks, points, 20);
        check_matches(chunks, true);
      }
    }
}

TEST_CASE("best match equals the reference without the point itself") {
  for (Index n : {1, 2, 33, 200})
    for (Index c : {1, 2, 33, 200}) {
      Problem p = lattice(n, c, 2, false);
      p.skip_self = true;
      check_matches(p, true);
      add_ranges(p, 5);
      check_matches(p, true);
    }
}

// Every third candidate moves to where the next one was, then the last alone, then none.
TEST_CASE("best match repeated while candidates move equals the reference") {
  for (const bool bias : {false, true})
    for (Index n : {1, 33, 300})
      for (Index c : {1, 8, 41}) {
        Problem p = lattice(n, c, 9, bias);
        for_each_backend([&](Backend& b) {
          Problem now = p;
          const auto best = b.allocate<std::int32_t>(n);
          const auto state = b.make_match_state(n, now.d);
          for (int step = 0; step < 4; ++step) {
            std::vector<std::int32_t> moved;
            for (Index i = 0; i < c; ++i) moved.push_back(step == 1 ? i % 3 == 0 : step == 2 && i == c - 1);
            for (Index i = 0; i < c; ++i)
              if (moved[static_cast<std::size_t>(i)] != 0)
                std::copy_n(p.candidates.begin() + (i + 1) % c * p.d, p.d, now.candidates.begin() + i * p.d);
            kernels::BestMatch<Buffer> op{.points = b.adopt(now.points, n, now.d),
                                          .candidates = b.adopt(now.candidates, c, now.d),
                                          .state = state.get(),
                                          .best = best};
            if (bias) op.bias = b.adopt(now.bias, c);
            if (step > 0) op.moved = b.adopt(moved, c);
            b.run(op);
            check_equivalent(b.read(best), matches(*make_ref_backend(), now).best, "best");
          }
        });
      }
}

TEST_CASE("best match equals the reference where no score is above -inf") {
  Problem p = lattice(40, 20, 2, true);
  std::fill(p.bias.begin(), p.bias.end(), -kInfinity);
  check_matches(p, true);
  p.skip_self = true;
  check_matches(p, true);
  add_ranges(p, 5);
  check_matches(p, true);
}

TEST_CASE("best match equals the reference up to the tolerance where scores are not exact") {
  for (Index d : {1, 7, 64, 128}) {
    Problem p{.n = 150, .c = 700, .d = d, .points = Random().normal(150 * d), .candidates = Random(7).normal(700 * d)};
    check_matches(p, false);
    p.bias = Random(3).normal(700);
    add_ranges(p, 9);
    check_matches(p, false);
  }
}

TEST_CASE("best match: the same bits however the points are split into calls") {
  Problem p{.n = 130, .c = 90, .d = 37, .points = Random().normal(130 * 37), .candidates = Random(7).normal(90 * 37)};
  add_chunks(p, 40, 30);
  for_each_backend([&](Backend& b) {
    const Matches whole = matches(b, p);
    for (Index block : {1, 7, 64}) {
      Matches split;
      for (Index begin = 0; begin < p.n; begin += block) {
        const Matches part = matches(b, p, begin, std::min(p.n, begin + block));
        split.best.insert(split.best.end(), part.best.begin(), part.best.end());
        split.score.insert(split.score.end(), part.score.begin(), part.score.end());
      }
      CHECK(split.best == whole.best);
      CHECK(same_bits(split.score, whole.score));
    }
  });
}

TEST_CASE("inner products equal the reference") {
  for (Index m : {0, 1, 7, 8, 9, 100})
    for (Index n : {0, 1, 15, 33, 600})
      for (Index d : {1, 2, 9, 128}) {
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(d);
        const auto a = Random().normal(m * d);
        const auto rows = Random(7).normal(n * d);
        const auto expected = products(*make_ref_backend(), a, m, rows, n, d);
        for_each_backend([&](Backend& b) {
          const auto actual = products(b, a, m, rows, n, d);
          check_equivalent(actual, expected, "inner products");
          if (m == 0 || n == 0) return;
          const std::vector<float> last(a.end() - d, a.end());
          const auto alone = products(b, last, 1, rows, n, d);
          CHECK(same_bits(alone, std::vector<float>(actual.end() - n, actual.end())));
        });
      }
}

TEST_CASE("best match and inner products see the same bits") {
  const Problem p{
      .n = 50, .c = 60, .d = 77, .points = Random().normal(50 * 77), .candidates = Random(7).normal(60 * 77)};
  for_each_backend([&](Backend& b) {
    const auto all = products(b, p.points, p.n, p.candidates, p.c, p.d);
    const Matches m = matches(b, p);
    for (std::size_t i = 0; i < m.best.size(); ++i) {
      const auto row = all.begin() + static_cast<std::ptrdiff_t>(i) * p.c;
      const auto highest = std::max_element(row, row + p.c);
      CHECK(m.best[i] == highest - row);
      CHECK(m.score[i] == *highest);
    }
  });
}

TEST_CASE("normalized rows equal the reference, in place too, tiny and zero rows included") {
  for (Index d : {1, 2, 7, 16, 33, 128}) {
    auto rows = Random().normal(9 * d);
    for (Index c = 0; c < d; ++c) {
      rows[static_cast<std::size_t>(c)] = 0;
      rows[static_cast<std::size_t>(d + c)] *= 1e-41f;
      rows[static_cast<std::size_t>(2 * d + c)] *= 1e30f;
    }
    const auto run = [&](Backend& b, bool in_place) {
      const auto in = b.adopt(rows, 9, d);
      const auto out = in_place ? in : b.allocate<float>(9, d);
      b.run(kernels::NormalizeRows<Buffer>{.rows = in, .out = out});
      return b.read(out);
    };
    const auto expected = run(*make_ref_backend(), false);
    for_each_backend([&](Backend& b) {
      check_equivalent(run(b, false), expected, "normalized");
      CHECK(same_bits(run(b, true), run(b, false)));
    });
  }
}

TEST_CASE("mean rows equal the reference: rows without label, labels without rows, with and without weights") {
  for (const bool weighted : {false, true})
    for (Index n : {0, 1, 40, 500})
      for (Index d : {1, 3, 16, 33, 128})
        for (Index c : {1, 6, 90}) {
          CAPTURE(n);
          CAPTURE(d);
          CAPTURE(c);
          const auto rows = Random().normal(n * d);
          const auto labels = Random(2).integers(n, -1, static_cast<std::int32_t>(c) - 1);
          auto weights = Random(3).normal(n);
          for (float& w : weights) w = 0.1f + std::abs(w);
          const auto run = [&](Backend& b) {
            const auto out = b.adopt(Random(4).normal(c * d), c, d);
            const auto mass = b.allocate<float>(c);
            kernels::MeanRows<Buffer> op{
                .rows = b.adopt(rows, n, d), .labels = b.adopt(labels, n), .out = out, .mass = mass};
            if (weighted) op.weights = b.adopt(weights, n);
            b.run(op);
            auto all = b.read(out);
            const auto sums = b.read(mass);
            all.insert(all.end(), sums.begin(), sums.end());
            return all;
          };
          const auto expected = run(*make_ref_backend());
          for_each_backend([&](Backend& b) { check_equivalent(run(b), expected, "means and masses"); });
        }
}

TEST_CASE("mean rows of so many labels that a few columns are summed at a time") {
  // 2^18 labels leave room for the sums of 16 columns at a time; 40 columns are two and a half of these.
  const Index n = sized(300000, 1500), d = 40, c = sized(Index{1} << 18, 300);
  const auto rows = Random().normal(n * d);
  const auto labels = Random(2).integers(n, -1, static_cast<std::int32_t>(c) - 1);
  const auto run = [&](Backend& b) {
    const auto out = b.adopt(std::vector<float>(static_cast<std::size_t>(c * d), 1), c, d);
    b.run(kernels::MeanRows<Buffer>{
        .rows = b.adopt(rows, n, d), .labels = b.adopt(labels, n), .out = out, .mass = b.allocate<float>(c)});
    return b.read(out);
  };
  const auto expected = run(*make_ref_backend());
  for_each_backend([&](Backend& b) { CHECK(same_bits(run(b), expected)); });
}

TEST_CASE("products of rows with many zeros: the bits of each row alone, beside infinities and NaN too") {
  const Index m = 70, n = sized(333, 120);
  for (const Index d : {5, 64, 256}) {
    CAPTURE(d);
    auto a = Random(8).normal(m * d), rows = Random(9).normal(n * d);
    for (std::size_t k = 0; k < a.size(); ++k)
      if (k % 2 == 1 || k % 7 == 0) a[k] = 0;
    for (const float odd : {0.0f, kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
      rows[static_cast<std::size_t>(d * n / 2)] = odd;
      for_each_backend([&](Backend& b) {
        const std::vector<float> together = products(b, a, m, rows, n, d);
        for (Index i = 0; i < m; i += sized(1, 9)) {
          const auto begin = a.begin() + i * d;
          const std::vector<float> alone = products(b, {begin, begin + d}, 1, rows, n, d);
          CHECK(same_bits(alone, {together.begin() + i * n, together.begin() + (i + 1) * n}));
        }
      });
    }
  }
}
