// SPDX-License-Identifier: Apache-2.0
#include <kvbench/bounds/trials/error_claim.hpp>

#include <cmath>

#include <fmt/format.h>

#include <kvbench/bounds/trials/contrast.hpp>
#include <kvbench/evidence/test.hpp>
#include <kvbench/trace/layer_spread.hpp>

namespace kvbench::bounds {
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
