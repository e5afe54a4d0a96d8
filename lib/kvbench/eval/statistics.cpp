// SPDX-License-Identifier: Apache-2.0
#include <kvbench/eval/statistics.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

#include <kvbench/core/distributions.hpp>

namespace kvbench::eval {

double mcnemar_mid_p(std::int64_t harmful, std::int64_t beneficial) {
  const std::int64_t discordant = harmful + beneficial, fewer = std::min(harmful, beneficial);
  // 2 P(X < fewer) + P(X = fewer): both tails, with half of the probability of what was observed.
  const double below = fewer == 0 ? 0 : binomial_head(fewer - 1, discordant, 0.5);
  return std::min(1.0, binomial_head(fewer, discordant, 0.5) + below);
}

double tost_mean_p(std::span<const double> differences, double margin) {
  if (differences.size() < 2) return NAN;
  const double centre = mean(differences), error = standard_error(differences), room = margin - std::abs(centre);
  if (std::isnan(centre) || std::isnan(error)) return NAN;
  if (error == 0) return room > 0 ? 0 : 1;
  return student_tail(room / error, static_cast<double>(differences.size() - 1));
}

double tost_flips_p(std::int64_t harmful, std::int64_t beneficial, std::int64_t items, double margin) {
  if (items == 0) return NAN;
  return binomial_head(std::max(harmful, beneficial), items, margin);
}

std::vector<double> ranks_of(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return values[i]; });
  std::vector<double> ranks(values.size());
  for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    end = begin + 1;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    const double shared = static_cast<double>(begin + 1 + end) / 2;
    for (std::size_t i = begin; i < end; ++i) ranks[order[i]] = shared;
  }
  return ranks;
}

double spearman(std::span<const double> x, std::span<const double> y) {
  assert(x.size() == y.size());
  if (x.size() < 3) return NAN;
  const std::vector<double> a = ranks_of(x), b = ranks_of(y);
  const double centre = static_cast<double>(x.size() + 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - centre) * (b[i] - centre);
    aa += (a[i] - centre) * (a[i] - centre);
    bb += (b[i] - centre) * (b[i] - centre);
  }
  return aa == 0 || bb == 0 ? NAN : ab / std::sqrt(aa * bb);
}

}  // namespace kvbench::eval
