// SPDX-License-Identifier: Apache-2.0
#include <kvbench/faithful/checks/checks.hpp>

#include <algorithm>

#include <kvbench/bounds/check/subject.hpp>
#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/faithful/mutants/mutant.hpp>
#include <kvbench/faithful/oracle/balancekv.hpp>

#include <unit/bounds/judged.hpp>
#include <unit/bounds/subjects.hpp>

using namespace kvbench;
using namespace kvbench::bounds;
using namespace kvbench::faithful;
using namespace kvbench::testing;
using doctest::Approx;

namespace {

constexpr WalkRules paper;

/// Tokens with keys of zero and v = 1.
WalkVectors ones(const std::vector<float>& keys) { return {.d = 1, .dv = 0, .scale = 1, .keys = keys}; }

std::vector<int> signs_of(const WalkVectors& vectors, std::vector<double> uniforms, const BalanceSetup& setup) {
  std::vector<Index> tokens;
  for (Index i = 0; i < std::ssize(uniforms); ++i) tokens.push_back(i);
  const WalkCall call{.tokens = tokens, .uniforms = std::move(uniforms), .radii = radii_of(vectors, tokens)};
  return walk_of_paper(vectors, call, setup, paper).signs;
}

std::vector<TokenId> ids(const Snapshot& snapshot) {
  std::vector<TokenId> out;
  for (const HeldEntry& entry : snapshot.held) out.push_back(entry.id);
  return out;
}

/// Keys of zero and values of one, of one dimension.
Subject equal_tokens(Index n) {
  const std::vector<float> zeros(static_cast<std::size_t>(n)), values(static_cast<std::size_t>(n), 1);
  return make_subject({.name = "equal", .keys = zeros, .values = values, .queries = {1}}, cpu());
}

/// Normal keys of length `key`, and values whose lengths are spread by `spread` powers of e; every `repeat`-th token is
/// new.
Subject normal_tokens(Index n, Index d, Index dv, double key, double spread, Index repeat, float scale) {
  std::vector<float> keys, values, queries;
  const auto at = [](Index i, Index c, std::uint32_t part) {
    return standard_normal(
        philox4x32({{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(c), part, 0}}, {7, 7}));
  };
  for (Index i = 0; i < n; ++i) {
    const Index source = i / repeat * repeat;
    const double size = std::exp(spread * at(source, 0, 2));
    for (Index c = 0; c < d; ++c)
      keys.push_back(static_cast<float>(key * at(source, c, 0) / std::sqrt(static_cast<double>(d))));
    for (Index c = 0; c < dv; ++c) values.push_back(static_cast<float>(size * at(source, c, 1)));
  }
  for (Index c = 0; c < d; ++c) queries.push_back(1);
  return make_subject(
      {.name = "normal", .keys = keys, .values = values, .queries = queries, .d = d, .dv = dv, .scale = scale}, cpu());
}

std::vector<CheckRow> algorithm_rows(CheckRun& run, const Subject& subject) {
  const auto both = [](CheckContext& context) {
    balancekv_algorithms().run(context);
    balancekv_released().run(context);
  };
  return run(both, &subject);
}

std::int64_t compared(const std::vector<CheckRow>& rows) {
  std::int64_t snapshots = 0;
  for (const CheckRow& row : rows) snapshots += row.trials.value_or(0);
  return snapshots;
}

/// The first n tokens of a stream of the suite.
Subject prefix(const std::string& name, Index n) {
  const Subject all = synthetic(name, 4);
  return make_subject({.name = all.source,
                       .keys = {all.keys.begin(), all.keys.begin() + n * all.d()},
                       .values = {all.values.begin(), all.values.begin() + n * all.dv()},
                       .queries = all.queries,
                       .d = all.d(),
                       .dv = all.dv(),
                       .scale = all.head.scale},
                      cpu());
}

}  // namespace

TEST_CASE("oracle of BalanceKV: c and the buckets by hand") {
  CHECK(constant_of_call(4, {.constant = "paper", .delta = 0.25}, paper) == Approx(30 * std::log(16.0)));
  CHECK(constant_of_call(4, {.constant = "paper"}, paper) == Approx(30 * std::log(16.0)));
  CHECK(constant_of_call(4, {.constant = "tight", .delta = 0.25}, paper) == Approx(0.5 + std::log(32.0)));
  CHECK(constant_of_call(4, {.constant = "2.5"}, paper) == 2.5);
  CHECK(bucket_of_norm(1) == 0);
  CHECK(bucket_of_norm(2) == 1);
  CHECK(bucket_of_norm(2.0000001) == 2);
  CHECK(bucket_of_norm(0.75) == 0);
  CHECK(bucket_of_norm(0.5) == -1);
}

// Keys of zero, v = 1: all products are 1, and R = 1. With c = 1: p = 1/2, and then 1/2 - s / 2 for s = 1 and s = 0.
TEST_CASE("oracle of BalanceKV: a walk by hand") {
  const std::vector<float> keys = {0, 0, 0, 0};
  CHECK(signs_of(ones(keys), {0.4, 0.01, 0.6, 0.99}, {.constant = "1", .pairs = false}) == std::vector{1, -1, -1, 1});
  CHECK(signs_of(ones(keys), {0.9, 0.9, 0.9, 0.9}, {.constant = "greedy", .pairs = false}) ==
        std::vector{1, -1, 1, -1});
  // Pairs of equal tokens differ by nothing: p = 1/2 for both; the last token of an odd list is alone.
  CHECK(signs_of(ones(keys), {0.4, 0.9, 0.6, 0.1}, {.constant = "1"}) == std::vector{1, -1, -1, 1});
  CHECK(signs_of(ones(keys), {0.4, 0.9, 0.6}, {.constant = "1"}) == std::vector{1, -1, -1});
  CHECK(kept_class({1, -1, 1, -1}, paper) == std::vector<std::size_t>{0, 2});
  CHECK(kept_class({1, -1, 1}, paper) == std::vector<std::size_t>{1});
}

// a |k|^2 = 800: the products e^800 are R^2, and their ratio decides.
TEST_CASE("oracle of BalanceKV: long keys do not overflow") {
  std::vector<float> keys(3, 80);
  WalkVectors vectors = ones(keys);
  vectors.scale = 0.125;
  CHECK(signs_of(vectors, {0.4, 0.01, 0.6}, {.constant = "1", .pairs = false}) == std::vector{1, -1, -1});
}

TEST_CASE("oracle of BalanceKV: a draw beside its probability is not decided") {
  const std::vector<float> keys = {0, 0};
  const std::vector<Index> tokens = {0, 1};
  const auto close = [&](double uniform) {
    const WalkCall call{.tokens = tokens, .uniforms = {0.4, uniform}};
    return walk_of_paper(ones(keys), call, {.constant = "2", .pairs = false}, paper).close;
  };
  CHECK(close(0.25));  // p = 1/2 - 1 / 4
  CHECK(close(0.25 + 1e-8));
  CHECK_FALSE(close(0.2501));
}

TEST_CASE("oracle of BalanceKV: budgets by hand") {
  const auto rounds = [](Index n, Index budget, const BalanceSetup& setup) {
    const auto found = rounds_of_budget(n, budget, setup);
    return found ? std::pair(found->rounds, found->recent) : std::pair(Index{-1}, Index{-1});
  };
  CHECK(rounds(10, 10, {}) == std::pair<Index, Index>{0, 0});
  CHECK(rounds(10, 5, {}) == std::pair<Index, Index>{1, 0});
  CHECK(rounds(11, 4, {}) == std::pair<Index, Index>{2, 0});  // 11 = 4 * 2 + 1 + 2: two of weight 4, and 2 and 1
  CHECK(rounds(10, 6, {.pairs = false}) == std::pair<Index, Index>{1, 2});  // 9 / 2 + 1 = 5, 8 / 2 + 2 = 6
  CHECK(rounds(10, 6, {.pairs = false, .rounds = 0}).first == -1);
}

TEST_CASE("oracle of BalanceKV: a context and a stream by hand") {
  CheckRun run(10);
  const Subject subject = equal_tokens(7);
  // Pairs of equal tokens have sums of zero: greedy keeps the first of each. Token 4 is alone, and keeps weight 1.
  const auto batch = balance_oracle(subject, {.prompt = 5, .appended = 1, .budget = 3}, {.constant = "greedy"});
  CHECK(ids(batch->times[0]) == std::vector<TokenId>{0, 2, 4});
  CHECK(batch->times[0].held[0].num == 2);
  CHECK(batch->times[0].held[2].den == 1);
  CHECK(ids(batch->times[1]) == std::vector<TokenId>{0, 2, 4, 5});
  // t = 2, T = 2: greedy signs are +1, -1. After 4 tokens, 0 and 2 were merged and 0 is left, with weight 4; after 6, 4
  // has 2.
  const BalanceSetup setup{.constant = "greedy", .pairs = false, .stream = true, .rounds = 2, .t = 2};
  const auto stream = balance_oracle(subject, {.prompt = 0, .appended = 7, .budget = 20}, setup);
  CHECK(stream->times[0].held.empty());
  CHECK(ids(stream->times[3]) == std::vector<TokenId>{0, 2});
  CHECK(ids(stream->times[4]) == std::vector<TokenId>{0});
  CHECK(stream->times[4].held[0].num == 4);
  CHECK(ids(stream->times[7]) == std::vector<TokenId>{0, 4, 6});
  CHECK(stream->times[7].held[1].den == 2);
  CHECK(stream->times[7].held[2].num == 1);
}

TEST_CASE("balancekv is the algorithms of the paper, token by token, on adverse inputs") {
  CheckRun run(10);
  Subject zeros = normal_tokens(200, 4, 4, 1, 1, 1, 0.5f);
  for (std::size_t i = 0; i < zeros.values.size(); ++i) zeros.values[i] *= i / 4 % 3 == 0 ? 0.0f : 1.0f;
  zeros = make_subject({.name = "zeros",
                        .keys = zeros.keys,
                        .values = zeros.values,
                        .queries = zeros.queries,
                        .d = 4,
                        .dv = 4,
                        .scale = 0.5f},
                       cpu());
  const Subject nothing = make_subject({.name = "no values",
                                        .keys = zeros.keys,
                                        .values = std::vector<float>(800),
                                        .queries = zeros.queries,
                                        .d = 4,
                                        .dv = 4,
                                        .scale = 0.5f},
                                       cpu());
  const std::pair<std::string, Subject> subjects[] = {
      {"zero values", zeros},
      {"all values zero", nothing},
      {"repeated tokens", normal_tokens(301, 8, 4, 2, 1, 4, 0.35f)},
      {"equal tokens", equal_tokens(130)},
      {"values of very different lengths", normal_tokens(400, 8, 4, 1, 4, 1, 0.35f)},
      {"one token", equal_tokens(1)},
      {"two tokens", equal_tokens(2)},
      {"three tokens", normal_tokens(3, 4, 4, 1, 1, 1, 0.5f)},
      {"an odd number", normal_tokens(77, 16, 8, 3, 0.5, 1, 0.25f)},
      {"keys of length 80", normal_tokens(300, 64, 16, 80, 1, 1, 0.125f)},
      {"wide values", normal_tokens(260, 33, 70, 2, 1, 1, 0.17f)},
  };
  for (const auto& named : subjects) {
    CAPTURE(named.first);
    const auto rows = algorithm_rows(run, named.second);
    check_no_fault(rows);
    CHECK(compared(rows) >= 15);
  }
}

TEST_CASE("balancekv is the algorithms of the paper on the synthetic streams, and nearly all steps are decided") {
  CheckRun run(10);
  for (const SubjectSource& source : synthetic_subjects(4)) {
    CAPTURE(source.name);
    const auto rows = algorithm_rows(run, source.load(cpu()));
    check_no_fault(rows);
    CHECK(compared(rows) > 700);
  }
}

TEST_CASE("every planted fault of balancekv is a fault of the algorithms") {
  CheckRun run(100);
  const Subject uneven = prefix("uneven-values", 400), short_keys = prefix("short-keys", 400);
  CHECK(balancekv_mutants().size() >= 14);
  for (const Mutant& mutant : balancekv_mutants()) {
    CAPTURE(mutant.id);
    const auto caught_on = [&](const Subject& subject) {
      const auto rows = run([&](CheckContext& context) { mutant.run(context); }, &subject);
      return std::ranges::any_of(rows,
                                 [](const CheckRow& row) { return row.kind == CheckKind::exact && is_fault(row); });
    };
    CHECK((caught_on(uneven) || caught_on(short_keys) || !mutant.exception.empty()));
  }
}
