// SPDX-License-Identifier: Apache-2.0
// ClusterKV (arXiv 2412.03213), design rationale: "tokens which are close in semantic space tend to have similar
// attention weights for a given q". Chelsea (arXiv 2506.11418, sections 1 and 3) merges keys for the same reason. Each
// token is paired with the token whose key has the largest cosine with its own; the difference of their attention
// weights is compared with that of the token and a random one, and with that of the token and its neighbour in the
// text. docs/theory/clusterkv.near_keys.md.
#include <kvbench/bounds/clusterkv/checks.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/bounds/check/vectors.hpp>
#include <kvbench/bounds/trials/contrast.hpp>
#include <kvbench/bounds/trials/paired_replay.hpp>

namespace kvbench::bounds {
namespace {

constexpr Index paired_tokens = 1024, asked_queries = 16;

/// A random other token for each token.
std::vector<std::size_t> random_partners(std::size_t n) {
  std::vector<std::size_t> partners;
  for (std::size_t i = 0; i < n; ++i) {
    const auto words = philox4x32({{static_cast<std::uint32_t>(i), 0, 0, 0}}, {41, 3});
    const auto away = 1 + static_cast<std::size_t>(uniform52(words.x[0], words.x[1]) * static_cast<double>(n - 1));
    partners.push_back((i + std::min(away, n - 1)) % n);
  }
  return partners;
}

/// The token after it, of the last one the token before it.
std::vector<std::size_t> text_neighbours(std::size_t n) {
  std::vector<std::size_t> partners;
  for (std::size_t i = 0; i < n; ++i) partners.push_back(i + 1 < n ? i + 1 : i - 1);
  return partners;
}

/// Differences, one per head.
struct NearKeyGains {
  std::vector<double> logits, weights, neighbours;
};

void add_near_keys(const Subject& subject, NearKeyGains& gains) {
  const Index n = std::min(subject.tokens(), paired_tokens);
  if (n < 4) throw methods::Unavailable("the context is too short");
  const auto count = static_cast<std::size_t>(n);
  const std::vector<std::size_t> near =
      nearest_rows(std::span(subject.keys).subspan(0, count * static_cast<std::size_t>(subject.d())), subject.d());
  const std::vector<std::size_t> random = random_partners(count), neighbours = text_neighbours(count);
  double logits_gain = 0, weights_gain = 0, neighbours_gain = 0;
  const double share = 1 / static_cast<double>(subject.num_queries());
  for (Index q = 0; q < subject.num_queries(); ++q) {
    std::vector<double> logits;
    for (Index i = 0; i < n; ++i) logits.push_back(double{subject.head.scale} * dot(subject.query(q), subject.key(i)));
    const WeightDistances of_near = weight_distances(logits, near), of_random = weight_distances(logits, random);
    logits_gain += share * (of_random.logits - of_near.logits);
    weights_gain += share * (of_random.weights - of_near.weights);
    neighbours_gain += share * (weight_distances(logits, neighbours).logits - of_near.logits);
  }
  gains.logits.push_back(logits_gain), gains.weights.push_back(weights_gain),
      gains.neighbours.push_back(neighbours_gain);
}

void run_clusterkv_near_keys(CheckContext& context) {
  NearKeyGains gains;
  for (const SubjectSource& source :
       trace_subjects(*context.reader, spread_layers(context.reader->info(), measured_layers), {}, asked_queries)) {
    context.poll();
    add_near_keys(source.load(context.backend), gains);
  }
  const auto add_row = [&](const char* part, const std::vector<double>& differences, const char* what) {
    add_claim(context, {part, fmt::format("unit=head of a prompt;queries={};tokens={}", asked_queries, paired_tokens)},
              contrast(differences), what);
  };
  add_row("logarithms of weights, against random tokens", gains.logits,
          "|ln p_i - ln p_j| of random tokens less that of tokens with the nearest keys");
  add_row("weights, against random tokens", gains.weights,
          "|p_i - p_j|, summed over tokens, of random tokens less that of tokens with the nearest keys");
  add_row("logarithms of weights, against neighbours in the text", gains.neighbours,
          "|ln p_i - ln p_j| of neighbours in the text, which pages join, less that of tokens with the nearest keys");
}

}  // namespace

WeightDistances weight_distances(std::span<const double> logits, std::span<const std::size_t> partners) {
  const double largest = *std::ranges::max_element(logits);
  double mass = 0;
  for (const double x : logits) mass += std::exp(x - largest);
  WeightDistances out;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double x = logits[i], y = logits[partners[i]];
    out.logits += std::abs(x - y) / static_cast<double>(logits.size());
    out.weights += std::abs(std::exp(x - largest) - std::exp(y - largest)) / mass;
  }
  return out;
}

std::vector<std::size_t> nearest_rows(std::span<const float> rows, Index d) {
  const auto width = static_cast<std::size_t>(d), n = rows.size() / width;
  const auto row = [&](std::size_t i) { return rows.subspan(i * width, width); };
  std::vector<double> lengths, best(n, -INFINITY);
  for (std::size_t i = 0; i < n; ++i) lengths.push_back(std::max(std::sqrt(squared_norm(row(i))), 1e-300));
  std::vector<std::size_t> nearest(n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double cosine = dot(row(i), row(j)) / (lengths[i] * lengths[j]);
      if (cosine > best[i]) best[i] = cosine, nearest[i] = j;
      if (cosine > best[j]) best[j] = cosine, nearest[j] = i;
    }
  }
  return nearest;
}

Check clusterkv_near_keys() {
  return {.id = "clusterkv.near_keys",
          .paper = "ClusterKV, arXiv 2412.03213, design rationale; Chelsea, arXiv 2506.11418, sections 1 and 3",
          .statement = "tokens whose keys are near have near attention weights",
          .scope = Scope::trace,
          .run = run_clusterkv_near_keys};
}

}  // namespace kvbench::bounds
