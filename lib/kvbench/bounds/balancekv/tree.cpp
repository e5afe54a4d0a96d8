// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/balancekv/tree.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/methods/sampling/merge_and_reduce.hpp>

namespace kvbench::bounds {
namespace {

/// |u_i - u_j|^2 / R^2.
double distance2(const std::vector<double>& gram, Index n, Index i, Index j) {
  const auto at = [&](Index a, Index b) { return gram[static_cast<std::size_t>(a * n + b)]; };
  return std::max(0.0, at(i, i) + at(j, j) - 2 * at(i, j));
}

/// The largest squared length of a difference over R^2: 4, or 2 where inner products are positive.
double largest_distance2(bool with_values) { return with_values ? 4 : 2; }

double constant_of(const TreeSettings& settings) { return settings.walk.constant.of(settings.t, settings.walk.delta); }

}  // namespace

TreeSketch library_tree(Backend& backend) {
  return [&backend](const WalkSample& sample, const TreeSettings& settings, std::uint32_t seed) {
    const methods::Draws draws(seed, "checks of balancekv", sample.head);
    const Buffer<const float> keys = backend.adopt(std::vector(sample.keys), sample.n, sample.d);
    Buffer<const float> values;
    if (sample.dv > 0) values = backend.adopt(std::vector(sample.values), sample.n, sample.dv);
    methods::MergeAndReduce tree({.t = settings.t,
                                  .levels = settings.levels,
                                  .walk = settings.walk,
                                  .value_radius = sample.dv > 0 ? settings.value_radius : 0},
                                 sample.d, sample.dv, backend);
    for (Index i = 0; i < sample.n; ++i) {
      tree.take(static_cast<TokenId>(i), static_cast<std::int32_t>(i), keys, values, draws);
    }
    TreeOutcome outcome{.weights = std::vector<double>(static_cast<std::size_t>(sample.n)),
                        .fails = tree.fails(),
                        .steps = tree.steps()};
    const auto levels = tree.tokens();
    for (std::size_t l = 0; l < levels.size(); ++l) {
      outcome.sizes.push_back(std::ssize(levels[l]));
      for (const TokenId id : levels[l])
        outcome.weights[static_cast<std::size_t>(id)] += std::ldexp(1.0, static_cast<int>(l));
    }
    return outcome;
  };
}

std::vector<Index> tree_calls(Index tokens, Index t, Index levels) {
  std::vector<Index> calls;
  for (Index level = 0; level < levels; ++level) calls.push_back(tokens / t >> level);
  return calls;
}

Index total_calls(Index tokens, Index t, Index levels) {
  Index sum = 0;
  for (const Index calls : tree_calls(tokens, t, levels)) sum += calls;
  return sum;
}

double tree_spread_of_pairs(Index tokens, const TreeSettings& settings, bool with_values) {
  const std::vector<Index> calls = tree_calls(tokens, settings.t, settings.levels);
  double variance = 0;
  for (std::size_t level = 0; level < calls.size(); ++level) {
    variance += std::ldexp(static_cast<double>(calls[level]), 2 * static_cast<int>(level));
  }
  return std::sqrt(variance * sub_gaussian(constant_of(settings)) * largest_distance2(with_values));
}

TreeBound tree_bound_of_pairs(const WalkSample& sample, const TreeSettings& settings, double log_probability) {
  const double c = constant_of(settings), wide = largest_distance2(sample.dv > 0);
  const double spread = sub_gaussian_norm(sample.outputs(), log_probability);
  const std::vector<double> gram = relative_gram(sample);
  double longest = 0;
  for (Index i = 0; i < sample.n; ++i) {
    for (Index j = 0; j < i; ++j) longest = std::max(longest, distance2(gram, sample.n, i, j) / wide);
  }
  const std::vector<Index> calls = tree_calls(sample.n, settings.t, settings.levels);
  const Index steps = settings.t / 2;
  double variance = 0;
  for (Index call = 0; call < (calls.empty() ? 0 : calls[0]); ++call) {
    std::vector<double> lengths2;
    for (Index pair = 0; pair < steps; ++pair) {
      const Index i = call * settings.t + 2 * pair;
      lengths2.push_back(distance2(gram, sample.n, i, i + 1) / wide);
    }
    variance += sub_gaussian(c, lengths2);
  }
  const double above = sub_gaussian(c, std::vector<double>(static_cast<std::size_t>(steps), longest));
  for (std::size_t level = 1; level < calls.size(); ++level) {
    variance += std::ldexp(static_cast<double>(calls[level]), 2 * static_cast<int>(level)) * above;
  }
  return {.tight = tree_spread_of_pairs(sample.n, settings, sample.dv > 0) * spread,
          .data = std::sqrt(variance * wide) * spread};
}

TreeBound tree_bound_of_halves(const WalkSample& sample, const TreeSettings& settings, double log_probability) {
  const double c = constant_of(settings);
  const Index all = total_calls(sample.n, settings.t, settings.levels);
  const double spread =
      sub_gaussian_norm(sample.outputs(), log_probability + std::log(std::max(1.0, static_cast<double>(all))));
  const std::vector<double> norms2 = relative_norms2(sample);
  const std::vector<Index> calls = tree_calls(sample.n, settings.t, settings.levels);
  TreeBound bound;
  for (std::size_t level = 0; level < calls.size(); ++level) {
    const double weight = std::ldexp(1.0, static_cast<int>(level));
    bound.tight += weight * static_cast<double>(calls[level]) * std::sqrt(sub_gaussian(c));
    for (Index call = 0; call < calls[level]; ++call) {
      std::vector<double> lengths2(static_cast<std::size_t>(settings.t), 1.0);
      if (level == 0) lengths2.assign(norms2.begin() + call * settings.t, norms2.begin() + (call + 1) * settings.t);
      bound.data += weight * std::sqrt(sub_gaussian(c, lengths2));
    }
  }
  bound.tight *= spread;
  bound.data *= spread;
  return bound;
}

}  // namespace kvbench::bounds
