// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <support/small.hpp>

#include <kvbench/methods/merging/attention_fits.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Numbers = std::vector<double>;

void check_numbers(const std::vector<double>& got, const std::vector<double>& expected, double tolerance = 1e-6) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(tolerance));
}

std::vector<Entry> entries_of(const HeadData& head, const std::vector<Assignment>& settings, Index budget) {
  const auto cache = open_cache("attention-matching", settings, prompt_of(head, ref()), budget, 0);
  const QueryBlock block = query_block(head, head.n, head.n + 1, head.n + 1, ref());
  return visible_entries(head, cache->entries(block), block, ref())[0];
}

/// The reference queries of a head, and everything that follows from them, written out in fp64.
struct Serial {
  explicit Serial(const HeadData& of) : head(of), rows(of.group * of.n) {
    for (Index g = 0; g < head.group; ++g) {
      for (Index i = 0; i < head.n; ++i) {
        Numbers row;
        for (Index j = 0; j < head.n; ++j) {
          double product = 0;
          for (Index c = 0; c < head.d; ++c)
            product += static_cast<double>(head.queries[at((g * head.total + i) * head.d + c)]) *
                       static_cast<double>(head.keys[at(j * head.d + c)]);
          row.push_back(product * static_cast<double>(head.scale));
        }
        logits.push_back(row);
      }
    }
    for (const Numbers& row : logits) {
      const double top = *std::ranges::max_element(row);
      double sum = 0;
      for (const double x : row) sum += std::exp(x - top);
      max.push_back(top);
      sums.push_back(sum);
    }
  }
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  double share(Index r, Index j) const { return std::exp(logits[at(r)][at(j)] - max[at(r)]); }

  Ids best(Index count) const {
    std::vector<std::pair<double, TokenId>> scores;
    for (Index j = 0; j < head.n; ++j) {
      double score = 0;
      for (Index r = 0; r < rows; ++r) score += std::pow(share(r, j) / sums[at(r)], 2);
      scores.emplace_back(-score, static_cast<TokenId>(j));
    }
    std::ranges::sort(scores);
    Ids ids;
    for (Index k = 0; k < count; ++k) ids.push_back(scores[at(k)].second);
    std::ranges::sort(ids);
    return ids;
  }
  Numbers columns(const Ids& ids) const {
    Numbers out;
    for (Index r = 0; r < rows; ++r) {
      for (const TokenId id : ids) out.push_back(share(r, id));
    }
    return out;
  }
  /// Greedy pursuit with a fit from scratch in each step.
  Ids pursuit(Index count) const {
    Ids ids;
    Numbers current(at(rows), 0);
    while (std::ssize(ids) < count) {
      TokenId best = -1;
      double most = 0;
      for (TokenId j = 0; j < head.n; ++j) {
        double gain = 0;
        for (Index r = 0; r < rows; ++r) gain += share(r, j) * (sums[at(r)] - current[at(r)]);
        if (std::ranges::find(ids, j) == ids.end() && (best < 0 || gain > most)) best = j, most = gain;
      }
      ids.push_back(best);
      const Numbers a = columns(ids);
      const Numbers w = bounded_least_squares(a, rows, std::ssize(ids), sums, {1e-12, std::exp(7.0)}, 0);
      for (Index r = 0; r < rows; ++r) {
        current[at(r)] = 0;
        for (std::size_t k = 0; k < w.size(); ++k) current[at(r)] += a[at(r) * w.size() + k] * w[k];
      }
    }
    std::ranges::sort(ids);
    return ids;
  }
  /// Largest part of the outputs that the values of `entries` miss, after the part that no values could give.
  double excess(const std::vector<Entry>& entries) const {
    const auto kept = entries.size();
    Numbers a, y;
    for (Index r = 0; r < rows; ++r) {
      double sum = 0;
      for (const Entry& e : entries) sum += static_cast<double>(e.num) * share(r, e.id);
      for (const Entry& e : entries) a.push_back(static_cast<double>(e.num) * share(r, e.id) / sum);
      for (Index c = 0; c < head.dv; ++c) {
        double out = 0;
        for (Index j = 0; j < head.n; ++j)
          out += share(r, j) * static_cast<double>(head.values[at(j * head.dv + c)]) / sums[at(r)];
        y.push_back(out);
      }
    }
    // Least squares leave a residual that no column can lower: A^T (A C - y) = 0.
    double most = 0;
    for (std::size_t k = 0; k < kept; ++k) {
      for (Index c = 0; c < head.dv; ++c) {
        double gradient = 0;
        for (Index r = 0; r < rows; ++r) {
          double rest = -y[at(r * head.dv + c)];
          for (std::size_t l = 0; l < kept; ++l)
            rest += a[at(r) * kept + l] * static_cast<double>(entries[l].value[at(c)]);
          gradient += a[at(r) * kept + k] * rest;
        }
        most = std::max(most, std::abs(gradient));
      }
    }
    return most;
  }

  const HeadData& head;
  Index rows;
  std::vector<Numbers> logits;
  Numbers max, sums;
};

}  // namespace

// Two equations of two unknowns; three equations x = 1, x = 2, x = 6 with the mean 3; one equation x + 2 y = 5, of
// whose solutions (1, 2) is the shortest.
TEST_CASE("least squares have one solution, the best, or the shortest") {
  check_numbers(least_squares(Numbers{2, 0, 0, 4}, 2, 2, Numbers{6, 1, 8, 2}, 2), {3, 0.5, 2, 0.5});
  check_numbers(least_squares(Numbers{1, 1, 1}, 3, 1, Numbers{1, 2, 6}), {3});
  check_numbers(least_squares(Numbers{1, 2}, 1, 2, Numbers{5}), {1, 2});
  check_numbers(least_squares(Numbers{0, 0}, 1, 2, Numbers{5}), {0, 0});
}

// The least squares of w0 = 8, w1 = -1 are clamped to 4 and 0.5. The Gram matrix is 1, so that a step of size 1 goes to
// 8 and -1 again. With columns (2, 0) and (0, 1) sigma^2 is 4 as soon as power iterations have found the first, almost:
// from (1, 1) / sqrt 2 three of them give (64, 1) / sqrt 4097, of which sigma^2 = (4 * 4096 + 1) / 4097. w1 = 3 is
// clamped to 2, and a step leads beyond it again; w0 stays at its optimum 1.
TEST_CASE("weights are least squares between bounds") {
  check_numbers(bounded_least_squares(Numbers{1, 0, 0, 1}, 2, 2, Numbers{8, -1}, {0.5, 4}, 2), {4, 0.5});
  check_numbers(bounded_least_squares(Numbers{2, 0, 0, 1}, 2, 2, Numbers{2, 3}, {0.5, 2}, 2), {1, 2});
  // Columns (1, 0) and (1, 1) of y = (4, 1): least squares 3 and 1, the first of which is clamped to 2. The residual is
  // then (-1, 0), the gradient (-1, -1), and with Gram matrix [1 1; 1 2] power iterations from (1, 1) give (2, 3),
  // (5, 8), (13, 21): sigma^2 = (34^2 + 21^2) / (13^2 + 21^2).
  const double step = 610.0 / (34 * 34 + 21 * 21);
  check_numbers(bounded_least_squares(Numbers{1, 1, 0, 1}, 2, 2, Numbers{4, 1}, {0.5, 2}, 1), {2, 1 + step});
}

TEST_CASE("columns that are added one by one give the least squares of all") {
  const Numbers y = {1, 2, 6, 3};
  const std::vector<std::vector<float>> columns = {{1, 0.5f, 0.25f, 0}, {0, 1, 1, 0.5f}, {0.25f, 0, 1, 1}};
  GrowingFit fit(y, 3);
  for (int round = 0; round < 2; ++round, fit.clear()) {
    for (std::size_t count = 1; count <= 3; ++count) {
      fit.add(columns[count - 1]);
      Numbers a;
      for (std::size_t r = 0; r < 4; ++r) {
        for (std::size_t k = 0; k < count; ++k) a.push_back(static_cast<double>(columns[k][r]));
      }
      const Numbers expected = least_squares(a, 4, static_cast<Index>(count), y);
      check_numbers(fit.weights(), expected);
      const auto rest = fit.residual(expected);
      double first = y[0];
      for (std::size_t k = 0; k < count; ++k) first -= a[k] * expected[k];
      CHECK(static_cast<double>(rest[0]) == doctest::Approx(first).epsilon(1e-5));
    }
  }
}

// Every query is 1, so that every row of E is 1/8 1/4 1/2 1 with the sum 15/8, whatever the position of the query: all
// see all tokens. Two tokens are kept, 2 and 3. The shortest weights with w2 / 2 + w3 = 15/8 are 3/4 and 3/2, within
// the bounds, and a descent has nothing to lower. The shares of the two are then 1/5 and 4/5, and the shortest values
// with c2 / 5 + 4 c3 / 5 = (1 + 4 + 16 + 64) / 15 = 17/3 are 5/3 and 20/3.
TEST_CASE("attention-matching fits weights and values to the queries of the context") {
  const HeadData head = small_head(logs({1, 2, 4, 8, 1}), 4);
  const auto entries = entries_of(head, {}, 2);
  REQUIRE(entries.size() == 2);
  CHECK(ids_of(entries) == Ids{2, 3});
  CHECK(entries[0].num == doctest::Approx(0.75));
  CHECK(entries[1].num == doctest::Approx(1.5));
  CHECK(entries[0].den == entries[0].num);
  CHECK(entries[0].value.at(0) == doctest::Approx(5.0 / 3).epsilon(1e-4));
  CHECK(entries[1].value.at(0) == doctest::Approx(20.0 / 3).epsilon(1e-4));
  // One token of weight 15/8 and the value 17/3; by pursuit the same, which is where both forms begin.
  for (const char* form : {"basic", "omp"}) {
    const auto one = entries_of(head, {{"form", form}}, 1);
    CHECK(ids_of(one) == Ids{3});
    CHECK(one[0].num == doctest::Approx(15.0 / 8));
    CHECK(one[0].value.at(0) == doctest::Approx(17.0 / 3));
  }
  CHECK(entries_of(head, {}, 4).size() == 4);
}

// One token of 200 equal ones would need the weight 200: form=basic may give e^3.
TEST_CASE("the weights of attention-matching are bounded") {
  const HeadData head = small_head(std::vector<float>(31, 0), 30);
  CHECK(entries_of(head, {}, 1)[0].num == doctest::Approx(std::exp(3.0)));
  CHECK(entries_of(head, {{"form", "omp"}}, 1)[0].num == doctest::Approx(30));
}

TEST_CASE("attention-matching holds what its rule says") {
  const HeadData head = random_head({.n = 24, .decoded = 1, .group = 2}, 11, ref());
  const Serial serial(head);
  for (const Index budget : {1, 5, 12}) {
    CAPTURE(budget);
    const auto basic = entries_of(head, {}, budget);
    const Ids ids = serial.best(budget);
    CHECK(ids_of(basic) == ids);
    const Numbers weights = bounded_least_squares(serial.columns(ids), serial.rows, budget, serial.sums,
                                                  {std::exp(-3.0), std::exp(3.0)}, 2);
    for (std::size_t k = 0; k < ids.size(); ++k)
      CHECK(static_cast<double>(basic[k].num) == doctest::Approx(weights[k]));
    CHECK(serial.excess(basic) < 1e-4);
  }
  // No weight is below e^-7 here, so that none is left out.
  for (const Index budget : {1, 3}) {
    CAPTURE(budget);
    const auto omp = entries_of(head, {{"form", "omp"}}, budget);
    CHECK(ids_of(omp) == serial.pursuit(budget));
    for (const Entry& entry : omp) CHECK(entry.num > 9.2e-4f);
    CHECK(serial.excess(omp) < 1e-4);
  }
}

TEST_CASE("attention-matching takes as many reference queries as it is told, evenly spaced") {
  // Queries 1 and -1 in turn; of four positions, every second is taken with two queries per head: all of them 1.
  HeadData head = small_head(logs({1, 2, 4, 8, 1}), 4);
  for (std::size_t i = 0; i < 5; ++i) head.queries[i] = i % 2 == 0 ? 1 : -1;
  CHECK(ids_of(entries_of(head, {{"queries", "2"}}, 1)) == Ids{3});
  CHECK(entries_of(head, {{"queries", "2"}}, 1)[0].num == doctest::Approx(15.0 / 8));
  CHECK(entries_of(head, {}, 1)[0].num != doctest::Approx(15.0 / 8));
}

TEST_CASE("attention-matching needs queries of the context, and refuses too many pairs") {
  HeadData head = small_head({1, 2, 3, 4, 0}, 4);
  CHECK_THROWS_WITH_AS(open_cache("attention-matching", {{"max_pairs", "10"}}, prompt_of(head, ref()), 2, 0),
                       "attention-matching would compare 32 pairs of rows, above its limit of 10; raise "
                       "attention-matching.max_pairs, or lower the budget or attention-matching.queries",
                       Infeasible);
  head.lacks = {Part::observed_queries};
  CHECK_THROWS_AS(open_cache("attention-matching", {}, prompt_of(head, ref()), 2, 0), Unavailable);
}
