// SPDX-License-Identifier: Apache-2.0
// Codecs of a row of the registry, and what tests of several quantisers compute.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include <support/backends.hpp>

#include <kvbench/testing/head.hpp>

#include <kvbench/methods/registry.hpp>

namespace kvbench::testing {

/// A head of one token with d channels of keys and dv of values, in a layer of the model.
inline methods::HeadPrompt head_of(Index d, Index dv, Index layer, Index num_layers, Backend& backend = ref()) {
  methods::HeadPrompt head = prompt_of(random_head({.n = 1, .decoded = 1, .d = d, .dv = dv}, 1, backend), backend);
  head.layer = LayerId(layer);
  head.depth = layer;
  head.num_layers = head.num_caches = num_layers;
  return head;
}

inline methods::Codecs codecs_of(const std::string& method, const std::vector<methods::Assignment>& settings,
                                 const methods::HeadPrompt& head, std::uint32_t seed, std::size_t level = 0,
                                 Backend& backend = ref()) {
  const methods::MethodInfo& info = methods::find_method(method);
  return info.quantiser.codecs(head, info.bind(settings), level, seed, backend);
}

inline std::vector<float> decoded(const methods::Codec& codec, const std::vector<float>& rows, Index cols,
                                  Backend& backend = ref()) {
  const Index n = static_cast<Index>(rows.size()) / cols;
  return backend.read(codec.decoded(backend.adopt(rows, n, cols), backend));
}

inline double bytes_of(const methods::Footprint& arrays) {
  double bytes = 0;
  for (const methods::FootprintArray& array : arrays)
    bytes +=
        methods::element_bytes(array.element, methods::Element::f16) * static_cast<double>(array.rows * array.cols);
  return bytes;
}

/// <a, b> of row `row` of each.
inline double product(const std::vector<float>& a, const std::vector<float>& b, Index cols, Index row = 0) {
  double sum = 0;
  for (Index c = 0; c < cols; ++c) {
    const auto at = static_cast<std::size_t>(row * cols + c);
    sum += static_cast<double>(a[at]) * b[at];
  }
  return sum;
}

/// Mean and its standard error over seeds.
struct Trials {
  double sum = 0, squares = 0, count = 0;
  void add(double x) { sum += x, squares += x * x, count += 1; }
  double mean() const { return sum / count; }
  double error() const { return std::sqrt((squares / count - mean() * mean()) / count); }
};

/// sqrt(d pi / 2) E|u| for a coordinate u of a random unit vector: what directions of norm sqrt(d) multiply inner
/// products by. E|u| = Gamma(d / 2) / (sqrt(pi) Gamma((d + 1) / 2)).
inline double sphere_factor(double d) {
  return std::sqrt(d / 2) * std::exp(std::lgamma(d / 2) - std::lgamma((d + 1) / 2));
}

/// Rows of d numbers that quantisers have to survive: zeros, one huge, tiny, equal, alternating, random.
inline std::vector<float> hostile_rows(Index d) {
  std::vector<float> rows;
  const auto add = [&](auto number) {
    for (Index c = 0; c < d; ++c) rows.push_back(static_cast<float>(number(c)));
  };
  add([](Index) { return 0.0; });
  add([](Index c) { return c == 1 ? 3e4 : 0.01; });
  add([](Index c) { return c % 2 == 0 ? 1e-40 : -1e-41; });
  add([](Index) { return -2.5; });
  add([](Index c) { return c % 2 == 0 ? 1.0 : -1.0; });
  for (std::uint32_t stream = 0; stream < 8; ++stream)
    for (const float x : random_numbers(d, 90 + stream, 1)) rows.push_back(x);
  return rows;
}

}  // namespace kvbench::testing
