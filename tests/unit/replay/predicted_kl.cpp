// SPDX-License-Identifier: Apache-2.0
// Predicted KL: sums by hand. The check predicted_kl.second_order compares it with the KL of a known network.
#include <kvbench/replay/records/predicted_kl.hpp>
#include <kvbench/replay/records/record.hpp>

#include <array>
#include <cmath>

#include <doctest/doctest.h>

using namespace kvbench;
using namespace kvbench::replay;

TEST_CASE("Predicted KL adds the layers of a probe before it squares them, or the squares of a sample of layers") {
  // Layer 0: c = 1 and 2 for the two probes; layer 1: c = -1 and 2. Four scored tokens.
  const ProbeSums prompt{.scored = 4, .layers = 2, .seeds = 1, .probes = 2, .sums = {1, 2, -1, 2}};
  CHECK(predict_kl({&prompt, 1}, {}).mean == doctest::Approx((0.0 + 16.0) / 2 / (2 * 4)));
  const PredictedKl sample = predict_kl({&prompt, 1}, {.extrapolates = true, .scale = 3});
  CHECK(sample.mean == doctest::Approx(3 * (1.0 + 4.0 + 1.0 + 4.0) / 2 / (2 * 4)));
  CHECK(sample.interval.lo <= sample.mean);
  CHECK(sample.interval.hi >= sample.mean);
}

TEST_CASE("Predicted KL is a mean over seeds and prompts; prompts without probes are left out") {
  const std::array<ProbeSums, 3> prompts{{
      {.scored = 1, .layers = 1, .seeds = 2, .probes = 1, .sums = {2, 4}},  // (4 + 16) / 2 / 2 = 5
      {.scored = 2, .layers = 1, .seeds = 2, .probes = 1, .sums = {2, 2}},  // 4 / 4 = 1
      {},
  }};
  CHECK(predict_kl(prompts, {}).mean == doctest::Approx(3));
  CHECK(predict_kl(prompts, {}).interval.lo == doctest::Approx(1));
  CHECK(predict_kl(prompts, {}).interval.hi == doctest::Approx(5));
  CHECK(std::isnan(predict_kl(std::span(prompts).last(1), {}).mean));
  CHECK(std::isnan(predict_kl({}, {}).mean));
}

// Two texts, each with one layer of two heads; the second one has no probes. c = 1 + 2 and -1 + 2 for two probes, of
// one scored token: (9 + 1) / 2 / 2.
TEST_CASE("a row over texts of which some have probes is predicted from these, and says from how many") {
  ReplayResults results;
  results.model_layers = 1;
  results.prompts = {{.id = "0", .protocol = Protocol::decode, .scored_tokens = 1}, {.id = "1"}};
  results.budgets = {Budget::parse("25%")};
  results.methods = {{.name = "a"}};
  results.configurations = {{}};
  for (std::size_t prompt = 0; prompt < 2; ++prompt) {
    for (Index h = 0; h < 2; ++h) {
      HeadResult head{.place = {prompt, 0, h}, .layer = 0, .positions = {8}};
      ConfigurationResult& result = head.results.emplace_back();
      result.metrics.emplace_back().fill(0.5F);
      result.rel_err_fro = {0};
      if (prompt == 0) result.probe_sums = h == 0 ? std::vector<double>{1, -1} : std::vector<double>{2, 2};
      results.heads.push_back(std::move(head));
    }
  }
  const std::vector<Record> rows = summarize(results, Grain::head);
  REQUIRE(rows.size() > 4);
  CHECK(rows[0].prompt == "all");
  CHECK(rows[0].kl.mean == doctest::Approx(2.5));
  CHECK(rows[0].kl.about == "all layers; 1 of 2 texts; at least");
  for (const Record& row : rows) {
    if (row.prompt == "1" || row.query_head) CHECK(std::isnan(row.kl.mean));
    if (row.prompt == "0" && !row.query_head && !row.layer) CHECK(row.kl.about == "all layers; at least");
  }
}
