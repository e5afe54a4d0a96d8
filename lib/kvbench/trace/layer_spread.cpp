// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/layer_spread.hpp>

#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvbench::trace {
namespace {

/// "2, 5, 8, ..., 29", in full up to six numbers.
std::string shortened(std::span<const std::int64_t> layers) {
  if (layers.size() <= 6) return fmt::format("{}", fmt::join(layers, ", "));
  return fmt::format("{}, ..., {}", fmt::join(layers.first(3), ", "), layers.back());
}

constexpr const char* these_alone = "conclusions hold for these layers alone";

}  // namespace

LayerSpread spread_of(std::span<const std::int64_t> layers, std::int64_t of) {
  const auto count = static_cast<std::int64_t>(layers.size());
  if (count == of) return LayerSpread::all;
  if (count < fewest_layers) return LayerSpread::few;
  for (std::int64_t i = 0; i < count; ++i) {
    // The i-th part of the depth is [i of / count, (i + 1) of / count).
    const std::int64_t scaled = layers[static_cast<std::size_t>(i)] * count;
    if (scaled < i * of || scaled >= (i + 1) * of) return LayerSpread::clustered;
  }
  return LayerSpread::evenly_spaced;
}

std::string describe_spread(std::span<const std::int64_t> layers, std::int64_t of) {
  const auto described = [&](const char* kind, const char* meaning) {
    return fmt::format("{} ({} of {}, {}): {}", shortened(layers), layers.size(), of, kind, meaning);
  };
  switch (spread_of(layers, of)) {
    case LayerSpread::all:
      return fmt::format("all {}: conclusions hold for the whole model", of);
    case LayerSpread::evenly_spaced:
      return described("evenly spaced", "comparisons hold for all layers, with their interval over layers");
    case LayerSpread::few:
      return described(fmt::format("fewer than {}", fewest_layers).c_str(), these_alone);
    case LayerSpread::clustered:
      return described("not evenly spaced", these_alone);
  }
  return "";
}

}  // namespace kvbench::trace
