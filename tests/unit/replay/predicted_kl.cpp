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

void set_stream_err(HeadResult& head, float error) { head.results[0].metrics[0][Metric::stream_err] = error; }

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

TEST_CASE("sums of heads are added by layer, in the order in which layers come, and by seed") {
  ProbeSums sums{.scored = 1, .seeds = 2};
  const std::array<double, 2> one = {1, 2}, ten = {10, 20};
  sums.add(7, 0, one), sums.add(7, 1, one), sums.add(3, 1, ten), sums.add(7, 1, ten), sums.add(5, 0, {});
  CHECK(sums.layers == 2);
  CHECK(sums.probes == 2);
  CHECK(sums.sums == std::vector<double>{1, 2, 11, 22, 0, 0, 10, 20});
}

// Probes of one text: 0 and 16 / 8 = 2, mean 1 with the standard error 1; by chi square 2 / 7.378 to 2 / .0506.
TEST_CASE("the interval of one text is over its probes, and the noise of probes is said apart") {
  const ProbeSums prompt{.scored = 4, .layers = 2, .seeds = 1, .probes = 2, .sums = {1, 2, -1, 2}};
  const PredictedKl one = predict_kl({&prompt, 1}, {});
  CHECK(one.noise == doctest::Approx(1));
  CHECK(one.interval.lo == doctest::Approx(2 / 7.3778).epsilon(1e-3));
  CHECK(one.interval.hi == doctest::Approx(2 / 0.050636).epsilon(1e-3));
  // Two equal texts: the error of their mean is sqrt(2) / 2.
  const std::array<ProbeSums, 2> two = {prompt, prompt};
  CHECK(predict_kl(two, {}).noise == doctest::Approx(std::sqrt(0.5)));
  ProbeSums larger = prompt;  // mean and standard error 4
  larger.scored = 1;
  CHECK(predict_kl({&larger, 1}, {}).noise == doctest::Approx(1));
  CHECK(predict_kl(two, {}).interval.lo == doctest::Approx(1));
  // Layers of a sample: 3 * 2 * (1 + 4) / 2 / 8 = 1.875 each, so that they add no width.
  const PredictedKl sample = predict_kl(two, {.extrapolates = true, .scale = 3});
  CHECK(sample.interval.hi == doctest::Approx(sample.mean));
  const ProbeSums unlike{.scored = 4, .layers = 2, .seeds = 1, .probes = 2, .sums = {1, 2, -1, 4}};
  const std::array<ProbeSums, 2> both = {unlike, unlike};
  CHECK(predict_kl(both, {.extrapolates = true, .scale = 3}).interval.hi > 2 * sample.mean);
  const ProbeSums single{.scored = 1, .layers = 1, .seeds = 1, .probes = 1, .sums = {2}};
  CHECK(std::isnan(predict_kl({&single, 1}, {}).noise));
  const ProbeSums exact{.scored = 1, .layers = 1, .seeds = 1, .probes = 2, .sums = {0, 0}};
  CHECK(predict_kl({&exact, 1}, {}).interval.hi == 0);
}

// Which axis it is over cannot be seen in its mean: each of these changes one axis of one text.
TEST_CASE("the interval of one text depends on how many probes there are, and of a sample on how its layers differ") {
  const auto width = [](const ProbeSums& text, bool sample) {
    const PredictedKl kl = predict_kl({&text, 1}, {.extrapolates = sample, .scale = 1});
    return std::array{kl.interval.lo / kl.mean, kl.interval.hi / kl.mean};
  };
  const auto same = [](const std::array<double, 2>& a, const std::array<double, 2>& b) {
    CHECK(a[0] == doctest::Approx(b[0]));
    CHECK(a[1] == doctest::Approx(b[1]));
  };
  // [layers][seeds][probes]
  const ProbeSums text{.scored = 1, .layers = 1, .seeds = 1, .probes = 3, .sums = {1, 3, 2}};
  const std::array<double, 2> of_text = width(text, false);
  CHECK(of_text[0] < 0.5);
  same(of_text, width({.scored = 1, .layers = 1, .seeds = 2, .probes = 3, .sums = {1, 3, 2, 3, 2, 1}}, false));
  same(of_text, width({.scored = 1, .layers = 2, .seeds = 1, .probes = 3, .sums = {1, 3, 2, 0, 0, 0}}, false));
  const auto more = width({.scored = 1, .layers = 1, .seeds = 1, .probes = 6, .sums = {1, 3, 2, 1, 3, 2}}, false);
  CHECK(more[0] > 1.2 * of_text[0]);
  CHECK(more[1] < 0.8 * of_text[1]);
  // Layers nearly alike and probes not: no width. Layers 1 and 9 of mean 5 and standard error 4: exp(12.706 * 4 / 5).
  same({1, 1}, width({.scored = 1, .layers = 2, .seeds = 1, .probes = 3, .sums = {1, 3, 2, 1, 3, 2 + 1e-9}}, true));
  const double factor = std::exp(12.7062 * 0.8);
  const ProbeSums two_layers{.scored = 1, .layers = 2, .seeds = 1, .probes = 3, .sums = {1, 1, 1, 3, 3, 3}};
  same({1 / factor, factor}, width(two_layers, true));  // one degree of freedom, not two
  // Another text has the layers the other way round: their sums are alike.
  const std::array<ProbeSums, 2> unlike = {
      two_layers, {.scored = 1, .layers = 2, .seeds = 1, .probes = 3, .sums = {3, 3, 3, 1, 1, 1}}};
  const PredictedKl both = predict_kl(unlike, {.extrapolates = true, .scale = 1});
  CHECK(both.interval.hi == doctest::Approx(both.mean));
  same({1 / factor, factor},
       width({.scored = 1, .layers = 2, .seeds = 2, .probes = 2, .sums = {1, 1, 1, 1, 3, 3, 3, 3}}, true));
}

TEST_CASE("Predicted KL is a mean over seeds and prompts; prompts without probes are left out") {
  const std::array<ProbeSums, 3> prompts{{
      {.scored = 1, .layers = 1, .seeds = 2, .probes = 1, .sums = {2, 4}},  // (4 + 16) / 2 / 2 = 5
      {.scored = 2, .layers = 1, .seeds = 2, .probes = 1, .sums = {2, 2}},  // 4 / 4 = 1
      {},
  }};
  CHECK(predict_kl(prompts, {}).mean == doctest::Approx(3));
  // Logarithms 1.6094 and 0: mean .8047, variance 1.2951; centre 1.4523, half 12.706 sqrt(.6476 + .8387) = 15.490.
  CHECK(std::log(predict_kl(prompts, {}).interval.lo) == doctest::Approx(1.4523 - 15.490).epsilon(1e-3));
  CHECK(std::log(predict_kl(prompts, {}).interval.hi) == doctest::Approx(1.4523 + 15.490).epsilon(1e-3));
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

// Layer 1 has the errors 0.1 and 0.7 in two texts, of which the root mean square is 0.5. Layer 0 has 0.4 and 0.
TEST_CASE("a prediction is outside its region where the errors of a layer over all texts are large") {
  ReplayResults results = results_of(2, 2, 2);
  for (HeadResult& head : results.heads) set_stream_err(head, NAN);
  set_stream_err(results.heads[0], 0.4F), set_stream_err(results.heads[4], 0.0F);
  set_stream_err(results.heads[2], 0.1F), set_stream_err(results.heads[6], 0.7F);
  const std::vector<Record> rows = summarize(results, Grain::layer);
  CHECK(rows[0].kl.outside == "layer 1, error 0.5 of the stream");
  CHECK(rows[0].kl.about == "all layers; large");
  for (const Record& row : rows) {
    CAPTURE(row.prompt);
    if (row.layer)
      CHECK(is_outside(row.kl) == (row.prompt == "all" ? *row.layer == 1
                                   : row.prompt == "0" ? *row.layer == 0
                                                       : *row.layer == 1));
  }
}

TEST_CASE("errors of less than 0.3 of the stream are inside the region, infinite ones outside, unknown ones said") {
  for (const float error : {0.299F, 0.301F, INFINITY, NAN}) {
    ReplayResults results = results_of(1, 1, 1);
    for (HeadResult& head : results.heads) set_stream_err(head, error);
    const Record row = summarize(results, Grain::trace)[0];
    CHECK(is_outside(row.kl) == (error > 0.3F));
    CHECK(row.kl.about == (std::isnan(error) ? "all layers; large; region unknown" : "all layers; large"));
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
