// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/trials/contrast.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/core/paired_test.hpp>
#include <kvbench/evidence/test.hpp>
#include <kvbench/trace/layer_spread.hpp>

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

namespace {

/// The test of allowed * error of other / error of better against 1.
evidence::Test over_places(const PairedReplay& replay, const ErrorClaim& claim) {
  const std::vector<std::int64_t> layers = replay.layers();
  const std::int64_t of_model = replay.results().model_layers;
  const std::vector<double> small = replay.places({claim.better, claim.budget}),
                            large = replay.places({claim.other, claim.budget});
  const std::vector<double> ones(small.size(), 1);
  evidence::Pair pair{{.places = {{}, ones}}, {.places = {ones, ones}}, std::nullopt};
  for (std::size_t p = 0; p < small.size(); ++p) pair.a.places.sums.push_back(claim.allowed * large[p] / small[p]);
  if (const auto are_units = trace::layers_are_units(layers, layers.size(), of_model))
    pair.sample = {layers.size(), *are_units, static_cast<std::size_t>(of_model)};
  return test_group(std::span(&pair, 1), {}).front();
}

}  // namespace

CheckRow& add_error_claim(CheckContext& context, const Statement& statement, const PairedReplay& replay,
                          const ErrorClaim& claim) {
  try {
    if (const evidence::Test test = over_places(replay, claim); test.over == evidence::Test::Over::places) {
      const double ratio = std::exp(test.places.mean);
      return context.claim(
          statement,
          {.p_value = test.p_value,
           .holds = test.places.mean > 0,
           .units = static_cast<Index>(test.units),
           .over_places = test.tested_over},
          fmt::format("ratio of errors {:.3g} [{:.3g}, {:.3g}] over {}", ratio, std::exp(test.places.interval.lo),
                      std::exp(test.places.interval.hi), test.tested_over),
          {.measured = ratio});
    }
    const std::vector<double> small = replay.units({claim.better, claim.budget}),
                              large = replay.units({claim.other, claim.budget});
    std::vector<double> differences;
    for (std::size_t u = 0; u < small.size(); ++u) differences.push_back(claim.allowed * large[u] - small[u]);
    return add_claim(context, statement, contrast(differences),
                     "difference of errors in blocks of 16 queries, for these layers alone");
  } catch (const methods::Unavailable& reason) {
    return context.not_tested(CheckKind::claim, statement, reason.what());
  }
}

}  // namespace kvbench::bounds
