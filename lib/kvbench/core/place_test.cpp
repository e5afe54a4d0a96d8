// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/place_test.hpp>

#include <algorithm>
#include <cassert>
#include <vector>

#include <fmt/format.h>

#include <kvbench/core/distributions.hpp>

namespace kvbench {
namespace {

/// The variance of a mean over `units` (at least two), and its square over the degrees of freedom.
struct PartOfVariance {
  double value = 0, squares = 0;

  void add(std::span<const double> units) {
    const double error = standard_error(units), variance = error * error;
    value += variance;
    squares += variance * variance / static_cast<double>(units.size() - 1);
  }
};

}  // namespace

std::string units_of(const PlaceTest& test, std::size_t model_layers) {
  const std::string texts = test.texts == 0 ? "" : fmt::format("{} texts", test.texts);
  if (test.layers == 0) return texts;
  const std::string layers = test.layers == model_layers ? fmt::format("all {} layers", model_layers)
                                                         : fmt::format("{} of {} layers", test.layers, model_layers);
  return layers + (texts.empty() ? "" : " and " + texts);
}

PlaceTest place_test(std::span<const double> differences, std::size_t layers, bool layers_are_units) {
  assert(layers > 0 && !differences.empty() && differences.size() % layers == 0);
  const std::size_t texts = differences.size() / layers;
  std::vector<double> by_layer(layers), by_text(texts);
  for (std::size_t i = 0; i < differences.size(); ++i) {
    by_layer[i % layers] += differences[i] / static_cast<double>(texts);
    by_text[i / layers] += differences[i] / static_cast<double>(layers);
  }
  PlaceTest test{.mean = mean(by_text)};
  PartOfVariance variance;
  if (layers_are_units && layers > 1) {
    test.layers = layers;
    variance.add(by_layer);
  }
  if (texts >= fewest_texts) {
    test.texts = texts;
    variance.add(by_text);
  }
  if (test.units() == 0) return test;
  if (variance.value == 0) {
    test.interval = {test.mean, test.mean};
    test.p_value = test.mean == 0 ? 1 : 0;
    return test;
  }
  const double error = std::sqrt(variance.value), degrees = variance.value * variance.value / variance.squares;
  const double half = student_bound(0.95, degrees) * error;
  test.interval = {test.mean - half, test.mean + half};
  test.p_value = student_p(test.mean / error, degrees);
  return test;
}

}  // namespace kvbench
