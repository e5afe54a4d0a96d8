// SPDX-License-Identifier: Apache-2.0
// Predicted KL: sums by hand, and a network of two layers whose gradients and KL are computed here.
#include <kvbench/replay/records/predicted_kl.hpp>
#include <kvbench/replay/records/record.hpp>

#include <array>
#include <cmath>
#include <random>

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

namespace {

constexpr std::size_t words = 5, width = 3, tokens = 4, depth = 2;
using Logits = std::array<double, words>;
using Outputs = std::array<std::array<std::array<double, width>, tokens>, depth>;

/// Logits of a token: the sum over layers of a matrix times the output of the layer.
struct Network {
  std::array<std::array<std::array<double, width>, words>, depth> matrices;

  Logits probabilities(const Outputs& outputs, std::size_t token) const {
    Logits p{};
    double sum = 0;
    for (std::size_t w = 0; w < words; ++w) {
      for (std::size_t l = 0; l < depth; ++l)
        for (std::size_t c = 0; c < width; ++c) p[w] += matrices[l][w][c] * outputs[l][token][c];
      sum += p[w] = std::exp(p[w]);
    }
    for (double& x : p) x /= sum;
    return p;
  }
};

template <class Array, class Draw>
void fill(Array& array, const Draw& draw) {
  if constexpr (std::is_floating_point_v<typename Array::value_type>)
    for (double& x : array) x = draw();
  else
    for (auto& part : array) fill(part, draw);
}

double kl_of(const Network& network, const Outputs& exact, const Outputs& errors, double eps) {
  Outputs moved = exact;
  double kl = 0;
  for (std::size_t l = 0; l < depth; ++l)
    for (std::size_t t = 0; t < tokens; ++t)
      for (std::size_t c = 0; c < width; ++c) moved[l][t][c] += eps * errors[l][t][c];
  for (std::size_t t = 0; t < tokens; ++t) {
    const Logits p = network.probabilities(exact, t), q = network.probabilities(moved, t);
    for (std::size_t w = 0; w < words; ++w) kl += p[w] * std::log(p[w] / q[w]);
  }
  return kl / tokens;
}

/// c of a layer and probe: the gradient of sum_t s_t log p_t(y_t) times the errors of the layer.
double probe_sum(const Network& network, const Outputs& exact, const Outputs& errors, std::size_t layer,
                 const std::array<std::size_t, tokens>& labels, const std::array<int, tokens>& signs) {
  double sum = 0;
  for (std::size_t t = 0; t < tokens; ++t) {
    const Logits p = network.probabilities(exact, t);
    for (std::size_t w = 0; w < words; ++w) {
      const double gradient = signs[t] * ((w == labels[t] ? 1 : 0) - p[w]);
      for (std::size_t c = 0; c < width; ++c) sum += gradient * network.matrices[layer][w][c] * errors[layer][t][c];
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("KL over the square of the size of the errors approaches the prediction as the errors fall") {
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  const auto draw = [&] { return normal(random); };
  Network network;
  Outputs exact, errors;
  fill(network.matrices, draw), fill(exact, draw), fill(errors, draw);
  constexpr std::size_t probes = 20000;
  ProbeSums sums{.scored = tokens, .layers = depth, .seeds = 1, .probes = probes, .sums = {}};
  sums.sums.resize(depth * probes);
  for (std::size_t r = 0; r < probes; ++r) {
    std::array<std::size_t, tokens> labels;
    std::array<int, tokens> signs;
    for (std::size_t t = 0; t < tokens; ++t) {
      const Logits p = network.probabilities(exact, t);
      labels[t] = std::discrete_distribution<std::size_t>(p.begin(), p.end())(random);
      signs[t] = random() % 2 == 0 ? 1 : -1;
    }
    for (std::size_t l = 0; l < depth; ++l)
      sums.sums[l * probes + r] = probe_sum(network, exact, errors, l, labels, signs);
  }
  const double predicted = predict_kl({&sums, 1}, {}).mean;
  CHECK(kl_of(network, exact, errors, 1e-3) / 1e-6 == doctest::Approx(predicted).epsilon(0.03));
  CHECK(kl_of(network, exact, errors, 1e-1) / 1e-2 == doctest::Approx(predicted).epsilon(0.3));
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
