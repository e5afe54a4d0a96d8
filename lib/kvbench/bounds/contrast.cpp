// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/contrast.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace kvbench {
Contrast contrast(std::span<const double> differences, int resamples) {
  std::vector<double> known;
  std::ranges::copy_if(differences, std::back_inserter(known), [](double x) { return std::isfinite(x); });
  Contrast result{.units = std::ssize(known)};
  if (known.empty()) return result;
  double sum = 0, squares = 0;
  for (const double x : known) {
    sum += x;
    squares += x * x;
    result.positive += x > 0;
  }
  result.mean = mean(known);
  result.median = quantile(known, 0.5);
  if (resamples > 0) result.interval = bootstrap_mean(known, std::vector<double>(known.size(), 1.0), 1, resamples);
  if (squares > 0) (sum > 0 ? result.p_for : result.p_against) = std::exp(-sum * sum / squares / 2);
  return result;
}

void set_claim(CheckRow& row, const Contrast& c, const std::string& what) {
  row.measured = c.mean;
  if (c.units == 0) {
    row.assumptions = false;
    row.text = what + ": no observations";
    return;
  }
  row.decide_between(c.p_for, c.p_against);
  const std::string interval = c.units < 2 ? "" : fmt::format(" [{:+.4g}, {:+.4g}]", c.interval.lo, c.interval.hi);
  row.text = fmt::format("{}: mean {:+.4g}{}, median {:+.4g}, positive in {} of {} independent units", what, c.mean, interval,
                         c.median, c.positive, c.units);
}

}  // namespace kvbench
