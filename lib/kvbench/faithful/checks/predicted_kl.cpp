// SPDX-License-Identifier: Apache-2.0
// The predicted KL of a replay is the term of second order of the KL divergence that the errors of its answers cause
// in a network, whose gradients are known. docs/theory/predicted_kl.second_order.md. Where whole errors are too large
// for it, rows say so. docs/theory/predicted_kl.region.md.
#include <kvbench/faithful/checks/checks.hpp>

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/bounds/trials/paired_replay.hpp>
#include <kvbench/replay/exact/fp64_attention.hpp>
#include <kvbench/replay/records/record.hpp>

namespace kvbench::faithful {
namespace {

using Net = KnownNetwork;

constexpr Index network_count = 8;                                // one a seed
constexpr double most_off = 2;                                    // times the predicted KL, or its part
constexpr std::array<double, 4> error_sizes{1, 0.1, 0.01, 1e-3};  // x: two logits of a token move apart by at most this

/// What the errors of a configuration do to the logits, sum W dz: [scored, words].
using Moves = std::array<std::array<double, Net::words>, Net::scored>;

void add_moves(const KnownNetwork& network, const replay::HeadResult& result, const std::vector<float>& outputs,
               Moves& moves) {
  const auto rows = [](const std::vector<float>& array, Index first, Index count) {
    return std::span(array).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  };
  const Index number = result.layer * Net::kv_heads + result.place.kv_head;
  const auto keys = rows(network.keys, number * Net::tokens * Net::d, Net::tokens * Net::d);
  const auto values = rows(network.values, number * Net::tokens * Net::dv, Net::tokens * Net::dv);
  for (Index g = 0; g < Net::group; ++g) {
    const Index head = number * Net::group + g;
    for (Index t = 0; t < Net::scored; ++t) {
      const Index i = Net::unscored + t;
      const auto query = rows(network.asked, (head * Net::queries + i) * Net::d, Net::d);
      const auto answer = rows(outputs, (g * Net::queries + i) * Net::dv, Net::dv);
      const auto exact = replay::fp64_attention(query, keys, values, 0, Net::context + i + 1, Net::scale).out;
      for (Index w = 0; w < Net::words; ++w)
        for (std::size_t c = 0; c < exact.size(); ++c)
          moves[static_cast<std::size_t>(t)][static_cast<std::size_t>(w)] +=
              network.weights_of(head, w)[c] * (double{answer[c]} - exact[c]);
    }
  }
}

/// The moves by each seed of a method.
std::vector<Moves> moves_of(const KnownNetwork& network, const replay::ReplayResults& results, std::size_t method) {
  std::vector<Moves> all;
  for (std::size_t c = 0; c < results.configurations.size(); ++c) {
    if (results.configurations[c].method != method) continue;
    Moves& moves = all.emplace_back();
    for (const replay::HeadResult& head : results.heads)
      add_moves(network, head, head.results[c].raw.value().output, moves);
  }
  return all;
}

/// The most by which two logits of a token move apart.
double largest_range(const std::vector<Moves>& all) {
  double largest = 0;
  for (const Moves& moves : all)
    for (const auto& token : moves) largest = std::max(largest, std::ranges::max(token) - std::ranges::min(token));
  return largest;
}

/// KL(p || softmax(ln p + eps move)) = ln E exp(eps move) - E eps move with the mean E over p, per scored token.
double kl_of(const KnownNetwork& network, const std::vector<Moves>& all, double eps) {
  double sum = 0;
  for (const Moves& moves : all) {
    auto p = network.p.begin();
    for (const auto& token : moves) {
      double exponentials = 0, mean = 0;
      for (const double move : token) {
        exponentials += *p * std::exp(eps * move);
        mean += *p++ * eps * move;
      }
      sum += std::log(exponentials) - mean;
    }
  }
  return sum / static_cast<double>(all.size() * Net::scored);
}

/// KL / eps^2 over its prediction, of errors of one size.
struct Ratios {
  std::int64_t cases = 0, exceptions = 0;
  double least = INFINITY, largest = -INFINITY;

  void add(double ratio, double bound) {
    if (std::isnan(ratio)) ratio = INFINITY;
    ++cases;
    exceptions += !(std::abs(ratio - 1) <= bound);
    least = std::min(least, ratio), largest = std::max(largest, ratio);
  }
  double farthest() const { return std::max(largest - 1, 1 - least); }
};

void run_predicted_kl(bounds::CheckContext& context) { check_predicted_kl(context, replayed_prediction); }

void run_predicted_region(bounds::CheckContext& context) {
  check_predicted_region(context, [](const replay::Record& row) { return is_outside(row.kl); });
}

}  // namespace

std::vector<double> rows_prediction(const replay::ReplayResults& results) {
  std::vector<double> by_method;
  for (const replay::Record& row : summarize(results, replay::Grain::trace)) by_method.push_back(row.kl.mean);
  return by_method;
}

std::vector<double> replayed_prediction(const KnownNetwork& network, Backend& backend) {
  return rows_prediction(replay_network(network, backend));
}

void check_predicted_kl(bounds::CheckContext& context, const NetworkPrediction& predict) {
  std::array<Ratios, error_sizes.size()> ratios;
  const Index count = std::min(network_count, context.options.seeds);
  for (Index trial = 0; trial < count; ++trial) {
    context.poll();
    const KnownNetwork network(context.seed(trial));
    const replay::ReplayResults results = replay_network(network, context.backend);
    const std::vector<double> predicted = predict(network, context.backend);
    for (std::size_t m = 0; m < results.methods.size(); ++m) {
      const std::vector<Moves> moves = moves_of(network, results, m);
      for (std::size_t s = 0; s < error_sizes.size(); ++s) {
        const double eps = error_sizes[s] / largest_range(moves);
        ratios[s].add(kl_of(network, moves, eps) / (eps * eps) / predicted.at(m), std::expm1(error_sizes[s]));
      }
    }
  }
  for (std::size_t s = 0; s < error_sizes.size(); ++s)
    context.exact({fmt::format("errors that move logits apart by at most {}", error_sizes[s]),
                   fmt::format("x={}", error_sizes[s])},
                  ratios[s].exceptions, ratios[s].cases,
                  fmt::format("KL / eps^2 is {:.5f} to {:.5f} of the predicted KL, of the errors of two methods in {} "
                              "networks",
                              ratios[s].least, ratios[s].largest, count),
                  {.measured = ratios[s].farthest(), .bound = std::expm1(error_sizes[s])});
}

void check_predicted_region(bounds::CheckContext& context, const OutsideRule& outside) {
  const replay::MethodChoice rounding =
      bounds::method_choice("int", {{"bits", "4"}, {"value_bits", "8"}, {"group", "0"}});
  const Index count = std::min(network_count, context.options.seeds);
  for (const float bias : {0.0F, 100.0F}) {
    std::int64_t exceptions = 0, inside = 0;
    double least = INFINITY, most = 0, farthest = 1;
    for (Index trial = 0; trial < count; ++trial) {
      context.poll();
      const KnownNetwork network = confident_network(context.seed(trial), bias);
      const replay::ReplayResults results = replay_network(network, rounding, context.backend);
      const replay::Record row = summarize(results, replay::Grain::trace).at(0);
      const double ratio = kl_of(network, moves_of(network, results, 0), 1) / row.kl.mean;
      least = std::min(least, ratio), most = std::max(most, ratio);
      const bool marked = outside(row), off = !(ratio <= most_off && ratio >= 1 / most_off);
      exceptions += marked ? bias == 0 : off;
      if (marked) continue;
      ++inside;
      farthest = std::max({farthest, ratio, 1 / ratio});
    }
    context.exact({bias == 0 ? "keys without a constant part" : "keys with a constant part", ""}, exceptions, count,
                  fmt::format("KL is {:.2f} to {:.2f} times the predicted KL; {} of {} networks are not marked as "
                              "outside",
                              least, most, inside, count),
                  {.measured = farthest, .bound = most_off});
  }
}

bounds::Check predicted_kl_region() {
  return {.id = "predicted_kl.region",
          .paper = "kvbench: what attention errors do to the output (docs/damage.md)",
          .statement =
              "rows of 4-bit keys whose prediction is off by more than a factor of 2 are outside its region, "
              "those of keys without a constant part are not",
          .method = "",
          .scope = bounds::Scope::once,
          .run = run_predicted_region};
}

bounds::Check predicted_kl_second_order() {
  return {.id = "predicted_kl.second_order",
          .paper = "kvbench: what attention errors do to the output (docs/damage.md)",
          .statement = "KL / eps^2 approaches the predicted KL of a replay as eps, the size of its errors, falls",
          .method = "",
          .scope = bounds::Scope::once,
          .run = run_predicted_kl};
}

}  // namespace kvbench::faithful
