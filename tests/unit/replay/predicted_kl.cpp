// SPDX-License-Identifier: Apache-2.0
// Predicted KL: sums by hand. The check predicted_kl.second_order compares it with the KL of a known network.
#include <kvbench/replay/records/predicted_kl.hpp>
#include <kvbench/replay/records/record.hpp>

#include <array>
#include <cmath>
#include <string>

#include <doctest/doctest.h>

using namespace kvbench;
using namespace kvbench::replay;

namespace {

/// A method on texts of two heads, whose sums of probes are 1 + 2 and -1 + 2 where they have some, of one scored token:
/// a layer alone has (9 + 1) / 2 / 2.
ReplayResults results_of(std::size_t texts, std::size_t layers, std::int64_t model_layers) {
  ReplayResults results;
  results.model_layers = model_layers;
  for (std::size_t p = 0; p < texts; ++p)
    results.prompts.push_back({.id = std::to_string(p), .protocol = Protocol::decode, .scored_tokens = 1});
  results.budgets = {Budget::parse("25%mem")};
  results.methods = {{.name = "a"}};
  results.configurations = {{}};
  for (std::size_t i = 0; i < texts * layers * 2; ++i) {
    const auto layer = static_cast<Index>(i / 2 % layers), h = static_cast<Index>(i % 2);
    HeadResult head{.place = {i / 2 / layers, static_cast<std::size_t>(layer), h}, .layer = layer, .positions = {8}};
    ConfigurationResult& result = head.results.emplace_back();
    result.metrics.emplace_back().fill(0.5F);
    result.rel_err_fro = {0};
    result.probe_sums = h == 0 ? std::vector<double>{1, -1} : std::vector<double>{2, 2};
    results.heads.push_back(std::move(head));
  }
  return results;
}

ConfigurationResult ended(Status status, bool dense) { return {.status = status, .reason = "why", .dense = dense}; }

}  // namespace

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

// The sums of the second seed are 1 + 1 for each probe: (9 + 1 + 4 + 4) / 4 / 2.
TEST_CASE("each seed has sums of its own") {
  ReplayResults results = results_of(1, 1, 1);
  results.configurations.push_back({.seed = 1});
  for (HeadResult& head : results.heads) head.results.push_back(head.results[0]), head.results[1].probe_sums = {1, 1};
  CHECK(summarize(results, Grain::head).front().kl.mean == doctest::Approx(2.25));
}

TEST_CASE("a row over texts of which some have probes is predicted from these, and says from how many") {
  ReplayResults results = results_of(2, 1, 1);
  results.prompts[1].scored_tokens = 0;
  for (const std::size_t head : {2, 3}) results.heads[head].results[0].probe_sums.clear();
  const std::vector<Record> rows = summarize(results, Grain::head);
  REQUIRE(rows.size() > 4);
  CHECK(rows[0].prompt == "all");
  CHECK(rows[0].kl.mean == doctest::Approx(2.5));
  CHECK(rows[0].kl.about == "all layers; 1 of 2 texts; large");
  for (const Record& row : rows) {
    if (row.prompt == "1" || row.query_head) CHECK(std::isnan(row.kl.mean));
    if (row.prompt == "0" && !row.query_head && !row.layer) CHECK(row.kl.about == "all layers; large");
  }
}

// Text 0 has two layers, of which one has ended: its error is unknown unless the layer is kept whole. Text 1 has
// (2 * 3)^2 / 2 and (2 * 1)^2 / 2 for its two probes.
TEST_CASE("a text is predicted where all of its errors are known") {
  for (const Status status : {Status::skipped, Status::infeasible}) {
    for (const bool dense : {false, true}) {
      ReplayResults results = results_of(2, 2, 2);
      for (const std::size_t head : {2, 3}) results.heads[head].results[0] = ended(status, dense);
      const std::vector<Record> rows = summarize(results, Grain::layer);
      CHECK(rows[0].kl.mean == doctest::Approx(dense ? (10 + 2.5) / 2 : 10));
      CHECK(rows[0].kl.about == (dense ? "all layers; large" : "all layers; 1 of 2 texts; large"));
      for (const Record& row : rows) {
        if (row.prompt == "0" && !row.layer) CHECK(std::isnan(row.kl.mean) == !dense);
      }
    }
  }
}

TEST_CASE("a plan is no sample of its layers, and is none where a part costs too much") {
  ReplayResults results = results_of(1, 2, 4);
  CHECK(summarize(results, Grain::trace)[0].kl.about == "4 layers, from 2; large");
  CHECK(!summarize(results, Grain::trace)[0].is_part_of_plan());
  results.methods[0].name = "plan:p.toml";
  const Record part = summarize(results, Grain::trace)[0];
  CHECK(part.kl.about == "the replayed layers alone; large");
  CHECK(part.kl.mean == doctest::Approx(10));
  CHECK(part.is_part_of_plan());
  CHECK(part.reason.starts_with("a plan divides its budget among all layers"));
  results.model_layers = 2;
  CHECK(!summarize(results, Grain::trace)[0].is_part_of_plan());
  results.heads[3].results[0] = ended(Status::infeasible, false);
  for (const Record& row : summarize(results, Grain::layer)) {
    const bool whole = row.layer && *row.layer == 0;
    CHECK(row.status == (whole ? Status::ok : Status::infeasible));
  }
}
