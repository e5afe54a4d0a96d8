// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/trials/error_claim.hpp>

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <kvbench/bounds/trials/contrast.hpp>
#include <kvbench/core/place_test.hpp>
#include <kvbench/trace/layer_spread.hpp>

namespace kvbench::bounds {
namespace {

std::optional<PlaceTest> over_places(const PairedReplay& replay, const ErrorClaim& claim) {
  const std::vector<std::int64_t> layers = replay.layers();
  const auto are_units = trace::layers_are_units(layers, layers.size(), replay.results().model_layers);
  if (!are_units) return std::nullopt;
  const std::vector<double> small = replay.places({claim.better, claim.budget}),
                            large = replay.places({claim.other, claim.budget});
  std::vector<double> logs;
  for (std::size_t p = 0; p < small.size(); ++p) logs.push_back(std::log(claim.allowed * large[p] / small[p]));
  if (!std::ranges::all_of(logs, [](double x) { return std::isfinite(x); })) return std::nullopt;
  const PlaceTest test = place_test(logs, layers.size(), *are_units);
  return test.tested() ? std::optional(test) : std::nullopt;
}

}  // namespace

CheckRow& add_error_claim(CheckContext& context, const Statement& statement, const PairedReplay& replay,
                          const ErrorClaim& claim) {
  try {
    if (const std::optional<PlaceTest> test = over_places(replay, claim)) {
      const double ratio = std::exp(test->mean);
      const std::string places = units_of(*test, static_cast<std::size_t>(replay.results().model_layers));
      return context.claim(statement,
                           {.p_value = test->p_value,
                            .holds = test->mean > 0,
                            .units = static_cast<Index>(test->units()),
                            .over_places = places},
                           fmt::format("ratio of errors {:.3g} [{:.3g}, {:.3g}] over {}", ratio,
                                       std::exp(test->interval.lo), std::exp(test->interval.hi), places),
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
