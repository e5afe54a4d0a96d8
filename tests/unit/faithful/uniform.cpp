// SPDX-License-Identifier: Apache-2.0
// The recomputation of the uniform baselines by hand; the methods agree with it; planted faults are found.
#include <unit/bounds/judged.hpp>

#include <map>

#include <kvbench/faithful/checks/checks.hpp>
#include <kvbench/methods/stages/draws.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::faithful;
using namespace kvbench::methods;
using namespace kvbench::testing;

namespace {

Subject numbered(Index n, Backend& backend) {
  return make_subject({.name = "numbered",
                       .keys = std::vector<float>(static_cast<std::size_t>(n), 1),
                       .values = std::vector<float>(static_cast<std::size_t>(n), 1),
                       .queries = {1}},
                      backend);
}

std::map<TokenId, double> weights_of(const Snapshot& snapshot) {
  std::map<TokenId, double> weights;
  for (const HeldEntry& entry : snapshot.held) {
    CHECK(entry.num == entry.den);
    weights[entry.id] = entry.num;
  }
  return weights;
}

}  // namespace

TEST_CASE("recomputed uniform samples, by hand") {
  const Subject subject = numbered(4, ref());
  std::map<TokenId, int> kept;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    const Draws draws(seed, "uniform", subject.head);
    TokenId lowest = 0;
    for (const TokenId token : {1, 2}) lowest = draws.uniform(token) < draws.uniform(lowest) ? token : lowest;
    const OracleRun run = uniform_oracle(subject, {.prompt = 3, .appended = 1, .budget = 1, .seed = seed});
    REQUIRE(run.times.size() == 2);
    CHECK(run.decided == 2);
    CHECK(weights_of(run.times[0]) == std::map<TokenId, double>{{lowest, 3}});
    CHECK(weights_of(run.times[1]) == std::map<TokenId, double>{{lowest, 3}, {3, 1}});
    ++kept[lowest];
  }
  CHECK(kept.size() == 3);
  const OracleRun whole = uniform_oracle(subject, {.prompt = 3, .appended = 0, .budget = 7});
  CHECK(weights_of(whole.times[0]) == std::map<TokenId, double>{{0, 1}, {1, 1}, {2, 1}});
}

TEST_CASE("recomputed halving of the released baseline, by hand") {
  const Subject subject = numbered(6, ref());
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    // 3 of 5 tokens: one round of the first 4 in blocks of 2, and a window of one. Tokens 0 and 2 begin blocks: +1.
    const OracleRun run =
        uniform_repo_oracle(subject, {.prompt = 5, .appended = 1, .budget = 3, .seed = seed}, {.block = 2});
    const Draws draws(seed, "uniform-repo", subject.head);
    const bool plus1 = draws.uniform(1, 0) < 0.5, plus3 = draws.uniform(3, 0) < 0.5;
    std::map<TokenId, double> expected = {{4, 1}};
    // -1 in order, then +1 in order; the first two are kept.
    for (const TokenId token : plus1&& plus3 ? std::array{0, 1}
                               : plus1       ? std::array{3, 0}
                               : plus3       ? std::array{1, 0}
                                             : std::array{1, 3})
      expected[token] = 2;
    CHECK(weights_of(run.times[0]) == expected);
    expected[5] = 1;
    CHECK(weights_of(run.times[1]) == expected);
  }
  CHECK(uniform_repo_oracle(subject, {.prompt = 6, .budget = 2}, {.rounds = 2}).times[0].held.size() == 2);
  CHECK_THROWS_AS(uniform_repo_oracle(subject, {.prompt = 6, .budget = 1}, {.rounds = 0}), Infeasible);
}

TEST_CASE("the uniform baselines agree with their rules") {
  for (const Index n : {1, 2, 3, 50, 333}) {
    CAPTURE(n);
    Subject subject = numbered(n, cpu());
    subject.head.layer = LayerId{5}, subject.head.head = KvHeadId{1};
    const Judged judged(subject, uniform_samples().run);
    CHECK(judged.rows().size() == 16);
    CHECK(judged.none_violated());
    for (const CheckRow& row : judged.rows()) CHECK(row.trials.value_or(0) > 0);
  }
}
