// SPDX-License-Identifier: Apache-2.0
// Heads that share a budget hold different numbers of tokens: what rows count, and that layers hold their budget, for
// every scope, budget and protocol.
#include <map>

#include <doctest/doctest.h>

#include <kvbench/methods/eviction/given_scores.hpp>
#include <kvbench/methods/registry.hpp>
#include <kvbench/testing/head.hpp>
#include <support/small_trace.hpp>

using namespace kvbench;
using namespace kvbench::methods;
using namespace kvbench::replay;
using namespace kvbench::testing;

namespace {

constexpr double heads = 2, layers = 2, context = 28;

/// Scores of all tokens of the small trace, larger in layer 1 and in head 0.
MethodInfo scores_of(const trace::Reader& reader) {
  GivenScores scores{"s.h5", reader.sha256(), {}};
  for (std::int64_t l = 0; l < 2; ++l) {
    LayerScores layer{2, 40, random_numbers(80, 3, static_cast<std::uint32_t>(l))};
    for (std::size_t i = 0; i < 80; ++i) layer.values[i] += static_cast<float>(l) + (i < 40 ? 1.0f : 0.0f);
    scores.prompts[reader.info().prompts[0].id][l] = layer;
  }
  return given_scores_method("scores:s.h5", scores);
}

struct Case {
  const MethodInfo* info;
  std::vector<Assignment> settings;
  bool ragged = true;    ///< heads of a layer share a budget
  bool divides = false;  ///< layers do
};

/// Tokens of the context that answer, of each head by layer.
using Kept = std::map<std::int64_t, std::vector<double>>;
Kept kept_of(const ReplayResults& results, double others) {
  Kept kept;
  for (const HeadResult& head : results.heads) {
    const ConfigurationResult& result = head.results[0];
    REQUIRE_MESSAGE(result.status == Status::ok, result.reason);
    kept[head.layer].push_back(result.kept_tokens - others);
  }
  return kept;
}

double sum_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

/// Returns whether the heads of a layer hold different numbers of tokens.
bool check_counts(const Case& of, const ReplayResults& results, double others) {
  double budgets = 0, total = 0;
  bool differ = false;
  const Kept kept = kept_of(results, others);
  for (const HeadResult& head : results.heads) {
    const ConfigurationResult& result = head.results[0];
    budgets += static_cast<double>(result.budget_tokens) / heads / layers;
    CHECK(result.budget_tokens == results.heads[static_cast<std::size_t>(2 * head.layer)].results[0].budget_tokens);
    CHECK(result.bytes.kv >= 2 * (8 + 6) * result.kept_tokens * (of.info->rounds ? 0.3 : 0.5));
  }
  for (const auto& [layer, of_layer] : kept) {
    const auto own = static_cast<double>(results.heads[static_cast<std::size_t>(2 * layer)].results[0].budget_tokens);
    CHECK(sum_of(of_layer) == doctest::Approx(heads * own));
    differ |= of_layer[0] != of_layer[1];
    total += sum_of(of_layer);
  }
  CHECK(total <= heads * layers * budgets + 1e-9);
  if (of.divides) CHECK(results.heads[0].results[0].budget_tokens != results.heads[2].results[0].budget_tokens);
  return differ;
}

}  // namespace

TEST_CASE("a layer holds the budget of all its heads, whatever each of them holds") {
  const SmallTrace trace;
  const MethodInfo given = scores_of(trace.reader());
  const std::vector<Assignment> window = {{"window", "4"}}, stored = {{"window", "4"}, {"int8.group", "4"}};
  const Case cases[] = {
      {&find_method("adakv(snapkv)"), {{"window", "4"}, {"alpha", "0"}}},
      {&find_method("adakv@kvpress(snapkv)"), window},
      {&find_method("adakv(snapkv)+int8"), {{"window", "4"}, {"alpha", "0"}, {"int8.group", "4"}}},
      {&find_method("adakv(pyramidkv)"), {{"window", "2"}, {"beta", "4"}, {"alpha", "0"}}, true, true},
      {&given, {}, false},
      {&given, {{"scope", "layer"}}},
      {&given, {{"scope", "model"}, {"sinks", "1"}}, true, true}};
  for (const Case& of : cases) {
    bool differ = false;  // at some budget: where it is small, heads may win as many
    for (const Protocol protocol : {Protocol::prefill, Protocol::decode}) {
      for (const std::string text : {"10", "40%", "40%mem", "300B"}) {
        CAPTURE(of.info->name);
        CAPTURE(of.info->bind(of.settings).text());
        CAPTURE(text);
        ReplayRequest request = request_of(*of.info, of.settings, 10);
        request.budgets = {Budget::parse(text)};
        request.protocol = protocol;
        const ReplayResults results = replay::replay(trace.reader(), request, serial);
        // Decoded tokens are in the cache, 6.5 of 12 on average over the queries.
        differ |= check_counts(of, results, protocol == Protocol::decode ? 6.5 : 0);
        double held = 0, full = 0;
        for (const HeadResult& head : results.heads)
          held += head.results[0].bytes.of(CostKind::memory), full += head.results[0].bytes.full;
        if (request.budgets[0].cost()) {
          CHECK(held <= 0.4 * full);
          CHECK(held > 0.3 * full);  // 0.4, without the tokens that no longer fit
        }
      }
    }
    CHECK(differ == of.ragged);
  }
}

TEST_CASE("scope=model means the budget as the mean over layers") {
  const SmallTrace trace;
  const MethodInfo given = scores_of(trace.reader());
  for (const Index budget : {1, 2, 9, 15, 27, 28}) {
    ReplayRequest request = request_of(given, {{"scope", "model"}}, budget);
    const ReplayResults results = replay::replay(trace.reader(), request, serial);
    double sum = 0;
    for (const auto& [layer, of_layer] : kept_of(results, 6.5)) sum += sum_of(of_layer);
    CHECK(sum == doctest::Approx(heads * layers * static_cast<double>(budget)));
  }
}

TEST_CASE("scores of another trace are refused, and some of the heads of a layer are no competition") {
  const SmallTrace trace;
  GivenScores other{"s.h5", std::string(64, 'a'), {{"0", {{0, {2, 40, std::vector<float>(80, 0)}}}}}};
  const MethodInfo wrong = given_scores_method("scores:s.h5", other);
  CHECK(contains(message_of<Error>([&] { replay::replay(trace.reader(), request_of({&wrong}, 5), serial); }),
                 "scores:s.h5 belongs to a trace with the SHA-256 aaaa"));
  const MethodInfo given = scores_of(trace.reader());
  ReplayRequest request = request_of({&find_method("adakv(snapkv)"), &given}, 10);
  request.methods[0].params = request.methods[0].info->bind(std::vector<Assignment>{{"window", "4"}});
  request.kv_heads = {1};
  const ReplayResults results = replay::replay(trace.reader(), request, serial);
  CHECK(results.heads[0].results[0].status == Status::skipped);
  CHECK(contains(results.heads[0].results[0].reason, "omit --heads"));
  CHECK(results.heads[0].results[1].status == Status::ok);  // scope=head
}
