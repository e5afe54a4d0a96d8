// SPDX-License-Identifier: Apache-2.0
#include <kvbench/core/place_test.hpp>

#include <cassert>
#include <vector>

#include <fmt/format.h>

#include <kvbench/core/statistics.hpp>

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

std::string units_of(const PlaceTest& test, std::size_t model_layers, std::string_view name) {
  const std::string texts = test.texts == 0 ? "" : fmt::format("{} {}", test.texts, name);
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
  test.error = std::sqrt(variance.value);
  if (variance.value == 0) {
    test.p_value = test.mean == 0 ? 1 : 0;
  } else {
    test.degrees = variance.value * variance.value / variance.squares;
    test.p_value = student_p(test.mean / test.error, test.degrees);
  }
  test.interval = test.interval_at(0.95);
  return test;
}

Interval PlaceTest::interval_at(double level) const {
  if (error == 0) return {mean, mean};
  const double half = student_bound(level, degrees) * error;
  return {mean - half, mean + half};
}

}  // namespace kvbench
