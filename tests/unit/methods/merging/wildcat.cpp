// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <Eigen/Dense>

#include <support/small.hpp>

#include <kvbench/methods/merging/nystrom.hpp>
#include <kvbench/methods/stages/draws.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

using Settings = std::vector<Assignment>;

std::vector<Entry> entries_of(const HeadData& head, const Settings& settings, Index budget, std::uint32_t seed) {
  const auto cache = open_cache("wildcat", settings, prompt_of(head, ref()), budget, seed);
  const QueryBlock block = query_block(head, head.n, head.n + 1, head.n + 1, ref());
  return visible_entries(head, cache->entries(block), block, ref())[0];
}

/// The entry that stands for a coreset's token; its sums are compared in fp32.
void check_core(const HeadData& head, const Entry& entry, TokenId id, double weight, double value) {
  CHECK(entry.id == id);
  CHECK(entry.num == 1);
  CHECK(entry.den == doctest::Approx(weight));
  const float got = entry.value.empty() ? head.values[static_cast<std::size_t>(id)] : entry.value[0];
  CHECK(got == doctest::Approx(value));
}

/// The coreset of tokens [begin, end) by the rule, with whole matrices: what is left of K is K - K_:S K_SS^-1 K_S:.
struct Rule {
  Rule(const HeadData& head, Index begin, Index end, Index rank, const Draws& draws) {
    const Index size = end - begin;
    Eigen::MatrixXd all(head.n, head.d), values(size, head.dv);
    for (Index i = 0; i < head.n * head.d; ++i)
      all(i / head.d, i % head.d) = static_cast<double>(head.keys[static_cast<std::size_t>(i)]);
    for (Index i = 0; i < size * head.dv; ++i)
      values(i / head.dv, i % head.dv) =
          static_cast<double>(head.values[static_cast<std::size_t>(begin * head.dv + i)]);
    const Eigen::MatrixXd keys = (all.rowwise() - all.colwise().mean()).middleRows(begin, size);
    const double s = static_cast<double>(head.scale), radius = s * keys.rowwise().squaredNorm().maxCoeff();
    const Eigen::MatrixXd kernel =
        (keys * keys.transpose() * s / kernel_temperature(size, radius)).array().exp().matrix();
    std::vector<Index> chosen;
    Eigen::MatrixXd w;
    for (Index step = 0; step < rank; ++step) {
      Eigen::VectorXd left = kernel.diagonal();
      if (step > 0) left -= (kernel(Eigen::all, chosen) * w).diagonal();
      for (const Index c : chosen) left(c) = 0;
      double u = draws.uniform(begin, static_cast<std::uint32_t>(step)) * left.sum();
      Index pivot = 0;
      while (u > left(pivot)) u -= left(pivot++);
      chosen.push_back(pivot);
      w = Eigen::MatrixXd(kernel(chosen, chosen)).fullPivLu().solve(Eigen::MatrixXd(kernel(chosen, Eigen::all)));
    }
    const Eigen::MatrixXd sums = w * values;
    for (Index a = 0; a < rank; ++a) {
      Entry entry{.id = static_cast<TokenId>(begin + chosen[static_cast<std::size_t>(a)]),
                  .den = static_cast<float>(w.row(a).sum())};
      for (Index c = 0; c < head.dv; ++c) entry.value.push_back(static_cast<float>(sums(a, c)));
      entries.push_back(entry);
    }
    std::ranges::sort(entries, {}, &Entry::id);
  }
  std::vector<Entry> entries;
};

}  // namespace

// Two keys are equal: three of four tokens span all, whichever of the two is drawn. It has the weight 2 and both
// values, 1 + 4, and the others have their own: the answer is exact.
TEST_CASE("wildcat is exact where the keys kept span all others") {
  const HeadData head = small_head({1, -1, 1, 3, 0}, 4);
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    const auto got = entries_of(head, {{"bins", "1"}, {"sinks", "0"}, {"recent", "0"}}, 3, seed);
    REQUIRE(got.size() == 3);
    for (const Entry& e : got) check_core(head, e, e.id, e.id % 2 == 0 ? 2 : 1, e.id == 1 ? 2 : e.id == 3 ? 8 : 5);
  }
}

// A sink of key 2 and a bin of keys 0, 1, -1, -1, -1, whose mean is 0; f = 1 / 3.94582, E = exp(-f). By pair kept:
//   0 and 1: exp(-x) is (1 + E) - E exp(x) at x = 0 and f, so that the weights are 1 + 3 (1 + E) and 1 - 3 E < 0
//   0 and -1: so is exp(x) (1 + E) - E exp(-x): weights 1 + 1 + E, and -E beside the three of the keys -1
//   1 and -1: 1 is (exp(x) + exp(-x)) c at x = f and -f, c = 1 / (2 cosh f)
// Of the three equal keys one is kept. Values are 2, 4, 8, 16, 32.
TEST_CASE("wildcat weighs tokens as their kernel is interpolated, with negative weights") {
  const HeadData head = small_head({2, 0, 1, -1, -1, -1, 0}, 6);
  const double f = 1 / 3.94582, e = std::exp(-f), c = 1 / (2 * std::cosh(f));
  int seen[3] = {};
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const auto got = entries_of(head, {{"rank", "2"}, {"sinks", "1"}, {"recent", "0"}, {"tau", "fixed"}}, 3, seed);
    REQUIRE(got.size() == 3);
    CHECK((got[0].id == 0 && got[0].den == 1 && got[0].value.empty()));
    if (got[1].id == 1 && got[2].id == 2) {
      ++seen[0];
      check_core(head, got[1], 1, 4 + 3 * e, 2 + (1 + e) * 56);
      check_core(head, got[2], 2, 1 - 3 * e, 4 - e * 56);
      CHECK(got[2].den < 0);
    } else if (got[1].id == 1) {
      ++seen[1];
      check_core(head, got[1], 1, 2 + e, 2 + (1 + e) * 4);
      check_core(head, got[2], got[2].id, 3 - e, 56 - e * 4);
    } else {
      ++seen[2];
      check_core(head, got[1], 2, 1 + c, 4 + c * 2);
      check_core(head, got[2], got[2].id, 3 + c, 56 + c * 2);
    }
  }
  CHECK((seen[0] > 0 && seen[1] > 0 && seen[2] > 0));
}

// 35 tokens between 2 sinks and 3 recent ones. 13 tokens leave 8: two bins of 17 tokens with 3 each, and one left over.
TEST_CASE("wildcat keeps what its rule gives in each bin") {
  const HeadData head = random_head({.n = 40, .d = 5, .dv = 3}, 4, ref());
  const Settings settings = {{"rank", "3"}, {"sinks", "2"}, {"recent", "3"}};
  for (const std::uint32_t seed : {0u, 1u, 2u}) {
    const Draws draws(seed, "wildcat", prompt_of(head, ref()));
    std::vector<Entry> expected = {{.id = 0}, {.id = 1}};
    for (const Index begin : {2, 19}) {
      for (const Entry& e : Rule(head, begin, begin + 17, 3, draws).entries) expected.push_back(e);
    }
    for (TokenId id = 36; id < 40; ++id) expected.push_back({.id = id});
    const auto got = entries_of(head, settings, 13, seed);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].id == expected[i].id);
      CHECK(got[i].den == doctest::Approx(expected[i].den));
      REQUIRE(got[i].value.size() == expected[i].value.size());
      for (std::size_t k = 0; k < got[i].value.size(); ++k)
        CHECK(got[i].value[k] == doctest::Approx(expected[i].value[k]));
    }
  }
}

TEST_CASE("the temperature of wildcat's kernel solves its equation") {
  for (const double radius : {1e-6, 0.5, 4.0, 300.0}) {
    const double b = std::log(48.0) / radius + 2, w = b / (2 * kernel_temperature(48, radius));
    CHECK(w * std::exp(w) == doctest::Approx(b / 6.383202050647408));
  }
}

TEST_CASE("wildcat says which budgets are too small, and where sums overflow") {
  HeadData head = small_head(std::vector<float>(101, 1), 100);
  const auto open = [&](const Settings& settings, Index budget) { entries_of(head, settings, budget, 0); };
  head.values.assign(101, 3e38f);
  CHECK_THROWS_WITH_AS(open({}, 64), doctest::Contains("raise the budget, or lower wildcat.sinks"), Infeasible);
  CHECK_THROWS_WITH_AS(open({{"bins", "8"}, {"sinks", "1"}, {"recent", "0"}}, 10),
                       doctest::Contains("9 tokens for 8 bins and the 3 left over"), Infeasible);
  CHECK_THROWS_WITH_AS(open({}, 65), doctest::Contains("numbers overflow"), Infeasible);
}

// The context has values 1 to 8. Tokens within the range share a state; one outside begins another.
TEST_CASE("wildcat clamps to the values so far, each decoded token included") {
  HeadData head = small_head(std::vector<float>(10, 0), 4);
  head.values = {1, 2, 4, 8, 3, 8, 9, 9, 0.5f, 2};
  head.keys = {0, 1, 2, 3, 0, 0, 0, 0, 0, 0};
  const auto cache = open_cache("wildcat", {{"sinks", "1"}, {"recent", "1"}}, prompt_of(head, ref()), 3, 0);
  const auto range = [&](Index end) {
    for (const EntryTable& t : cache->entries(query_block(head, end - 1, end, end, ref()))) {
      if (t.range.present()) return ref().read(t.range);
    }
    return std::vector<float>();
  };
  Index end = 4;
  for (const auto& [taken, low, high] : {std::tuple{2, 1.f, 8.f}, {2, 1.f, 9.f}, {2, 0.5f, 9.f}}) {
    CHECK(append(*cache, token_block(head, end, 10, ref())) == taken);
    end += taken;
    CHECK(range(end) == std::vector{low, high});
  }
}
