// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/trials/contrast.hpp>

#include <algorithm>

#include <fmt/format.h>

#include <kvbench/core/paired_test.hpp>

namespace kvbench::bounds {

Contrast contrast(std::span<const double> differences, int resamples) {
  std::vector<double> known;
  std::ranges::copy_if(differences, std::back_inserter(known), [](double x) { return std::isfinite(x); });
  Contrast result{.units = std::ssize(known)};
  if (known.empty()) return result;
  result.positive = std::ranges::count_if(known, [](double x) { return x > 0; });
  result.mean = mean(known);
  result.median = quantile(known, 0.5);
  if (resamples > 0) result.interval = bootstrap_mean(known, std::vector<double>(known.size(), 1.0), 1, resamples);
  result.p_value = sign_flip_p(known);
  result.p_least = sign_flip_least(known.size());
  if (known.size() > 1) result.units_needed = units_for_power(known.size(), result.mean, standard_error(known));
  return result;
}

CheckRow& add_claim(CheckContext& context, const Statement& statement, const Contrast& c, const std::string& what) {
  if (c.units == 0) return context.not_tested(CheckKind::claim, statement, what + ": no observations");
  const std::string interval = c.units < 2 ? "" : fmt::format(" [{:+.4g}, {:+.4g}]", c.interval.lo, c.interval.hi);
  return context.claim(statement,
                       {.p_value = c.p_value,
                        .holds = c.mean > 0,
                        .p_least = c.p_least,
                        .units = c.units,
                        .units_needed = c.units_needed},
                       fmt::format("{}: mean {:+.4g}{}, median {:+.4g}, positive in {} of {} independent units", what,
                                   c.mean, interval, c.median, c.positive, c.units),
                       {.measured = c.mean});
}

}  // namespace kvbench::bounds
