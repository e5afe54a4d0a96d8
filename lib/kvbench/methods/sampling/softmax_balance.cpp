// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/sampling/softmax_balance.hpp>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include <kvbench/core/error.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

constexpr Index most_rounds = 62;

/// The largest value of each block.
std::vector<double> block_maxima(const std::vector<double>& values, const std::vector<std::int32_t>& starts) {
  std::vector<double> maxima;
  for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
    maxima.push_back(
        starts[b] == starts[b + 1] ? 0 : *std::max_element(values.begin() + starts[b], values.begin() + starts[b + 1]));
  }
  return maxima;
}

/// r_val^2 of each block.
std::vector<double> value_radii(const WalkRows& rows, Backend& backend) {
  if (!rows.values.present()) return std::vector<double>(rows.starts.size() - 1, 1);
  if (rows.value_radius > 0) return std::vector<double>(rows.starts.size() - 1, rows.value_radius * rows.value_radius);
  std::vector<double> norms2 = squared_norms(rows.values, backend);
  for (std::size_t i = 0; i < rows.weights.size(); ++i) norms2[i] *= double{rows.weights[i]} * double{rows.weights[i]};
  return block_maxima(norms2, rows.starts);
}

/// Per block: the shift of the exponents, and the step 1 / (2 c R^2) with R of the shifted kernel.
struct Thresholds {
  std::vector<float> shift, step;
};

Thresholds thresholds(const WalkRows& rows, const WalkSettings& settings, Backend& backend) {
  const std::vector<double> key2 = block_maxima(squared_norms(rows.keys, backend), rows.starts);
  const std::vector<double> value2 = value_radii(rows, backend);
  const double widened = !settings.pairs ? 1 : rows.values.present() ? 4 : 2;
  Thresholds all;
  for (std::size_t b = 0; b < key2.size(); ++b) {
    const Index n = rows.starts[b + 1] - rows.starts[b];
    const double largest = double{settings.scale} * key2[b], shift = walk_shift(largest);
    const double c =
        settings.constant.of(n, settings.delta > 0 ? settings.delta : 1 / static_cast<double>(std::max<Index>(n, 1)));
    const double threshold = c * widened * std::exp(largest - shift) * value2[b];
    all.shift.push_back(static_cast<float>(shift));
    // Zero values have zero sums: any finite step gives probability 1/2.
    all.step.push_back(static_cast<float>(std::min(1e38, threshold > 0 ? 1 / (2 * threshold) : 0)));
  }
  return all;
}

}  // namespace

double walk_shift(double largest) { return std::max(0.0, largest - 40); }

double WalkConstant::of(Index n, double delta) const {
  const double count = static_cast<double>(n);
  switch (kind) {
    case Kind::paper:
      return 30 * std::log(count / delta);
    case Kind::tight:
      return 0.5 + std::log(2 * count / delta);
    case Kind::number:
      return value;
    case Kind::greedy:
      break;
  }
  return 0;
}

WalkConstant parse_walk_constant(const std::string& parameter, const std::string& text) {
  if (text == "paper") return {WalkConstant::Kind::paper};
  if (text == "tight") return {WalkConstant::Kind::tight};
  if (text == "greedy") return {WalkConstant::Kind::greedy};
  double number = 0;
  const auto [stop, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (code != std::errc{} || stop != text.data() + text.size() || !std::isfinite(number) || number <= 0) {
    throw Error("parameter '{}' is '{}'; it must be paper, tight, greedy, or a number above 0", parameter, text);
  }
  return {WalkConstant::Kind::number, number};
}

WalkSigns softmax_balance(const WalkRows& rows, const WalkSettings& settings, Backend& backend) {
  const Index n = rows.keys.rows(), blocks = std::ssize(rows.starts) - 1;
  if (n == 0) return {};
  Thresholds limits = thresholds(rows, settings, backend);
  const auto signs = backend.allocate<std::int32_t>(n);
  const auto fails = backend.allocate<std::int32_t>(blocks);
  kernels::BalanceWalk<Buffer> walk{.keys = rows.keys,
                                    .values = rows.values,
                                    .starts = backend.adopt(std::vector(rows.starts), blocks + 1),
                                    .shift = backend.adopt(std::move(limits.shift), blocks),
                                    .step = backend.adopt(std::move(limits.step), blocks),
                                    .scale = settings.scale,
                                    .greedy = settings.constant.kind == WalkConstant::Kind::greedy,
                                    .pairs = settings.pairs,
                                    .uniforms = backend.adopt(std::vector(rows.uniforms), n),
                                    .signs = signs,
                                    .fails = fails};
  if (!rows.weights.empty()) walk.weights = backend.adopt(std::vector(rows.weights), n);
  backend.run(walk);
  const std::vector<std::int32_t> by_block = backend.read(fails);
  return {.signs = backend.read(signs),
          .fails = std::accumulate(by_block.begin(), by_block.end(), Index{0}),
          .steps = settings.pairs ? (n + 1) / 2 : n};
}

std::vector<Note> walk_notes(Index fails, Index steps) {
  if (fails == 0) return {};
  return {{"FAIL events of the walk", static_cast<double>(fails)}, {"of steps", static_cast<double>(steps)}};
}

std::vector<std::int32_t> block_starts(Index n, Index block) {
  std::vector<std::int32_t> starts;
  for (Index i = 0; i < n; i += block) starts.push_back(static_cast<std::int32_t>(i));
  starts.push_back(static_cast<std::int32_t>(n));
  return starts;
}

std::vector<double> token_uniforms(const Draws& draws, const std::vector<TokenId>& tokens, std::uint32_t draw) {
  std::vector<double> uniforms;
  for (const TokenId token : tokens) uniforms.push_back(draws.uniform(token, draw));
  return uniforms;
}

std::vector<std::int32_t> smaller_halves(const std::vector<std::int32_t>& signs,
                                         const std::vector<std::int32_t>& starts) {
  std::vector<std::int32_t> places;
  for (std::size_t b = 0; b + 1 < starts.size(); ++b) {
    const auto plus = std::count(signs.begin() + starts[b], signs.begin() + starts[b + 1], 1);
    const int kept = 2 * plus <= starts[b + 1] - starts[b] ? 1 : -1;
    for (std::int32_t i = starts[b]; i < starts[b + 1]; ++i) {
      if (signs[static_cast<std::size_t>(i)] == kept) places.push_back(i);
    }
  }
  return places;
}

KeptPlaces released_half(const std::vector<std::int32_t>& signs) {
  const Index n = std::ssize(signs), m = n / 2;
  if (m == 0) return {};
  Index plus = 0, c = 0;
  for (Index i = 0; i < n; ++i) {
    const bool positive = signs[static_cast<std::size_t>(i)] > 0;
    plus += positive;
    // The count of a class changes only at its members, so this is the index at which it first reaches m.
    if ((positive ? plus : i + 1 - plus) == m) c = i;
  }
  const std::int32_t dropped = signs[static_cast<std::size_t>(c)];
  KeptPlaces half;
  for (Index i = 0; i <= c; ++i) {
    if (signs[static_cast<std::size_t>(i)] != dropped) half.places.push_back(static_cast<std::int32_t>(i));
  }
  half.factors.assign(half.places.size(), 2);
  for (Index i = c + 1; i < n; ++i) half.places.push_back(static_cast<std::int32_t>(i));
  half.factors.resize(half.places.size(), 1);
  half.places.resize(static_cast<std::size_t>(m));
  half.factors.resize(static_cast<std::size_t>(m));
  return half;
}

void WeightedTokens::add_range(Index first, Index end) {
  for (Index i = first; i < end; ++i) ids.push_back(static_cast<TokenId>(i));
  weights.resize(ids.size(), 1);
}

WeightedTokens WeightedTokens::at(const KeptPlaces& kept) const {
  WeightedTokens left;
  for (std::size_t i = 0; i < kept.places.size(); ++i) {
    const auto place = static_cast<std::size_t>(kept.places[i]);
    left.ids.push_back(ids[place]);
    left.weights.push_back(kept.factors[i] * weights[place]);
  }
  return left;
}

Index left_of_halves(Index tokens, Index rounds) { return tokens >> rounds; }

Index left_of_pairs(Index tokens, Index rounds) {
  const auto odd = static_cast<std::uint64_t>(tokens) & ((std::uint64_t{1} << rounds) - 1);
  return (tokens >> rounds) + std::popcount(odd);
}

HalvingPlan plan_halving(const std::string& method, Index tokens, Index budget, Index rounds,
                         Index (*left)(Index, Index)) {
  const Index first = rounds >= 0 ? rounds : 0, last = rounds >= 0 ? rounds : most_rounds;
  for (Index t = first; t <= last; ++t) {
    Index best = -1, most = -1;
    for (Index recent = 0; recent <= std::min(budget, tokens); ++recent) {
      const Index kept = recent + left(tokens - recent, t);
      if (kept > budget || kept <= most) continue;
      best = recent;
      most = kept;
    }
    if (best >= 0) return {.rounds = t, .recent = best};
  }
  throw Infeasible(fmt::format("{} keeps about {} of {} tokens{}, more than the budget of {}; give a larger budget{}",
                               method, left(tokens, last), tokens,
                               rounds >= 0 ? fmt::format(" after {} rounds", rounds) : " after any number of rounds",
                               budget, rounds >= 0 ? fmt::format(", or do not set {}.rounds", method) : ""));
}

}  // namespace kvbench::methods
