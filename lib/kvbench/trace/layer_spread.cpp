// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/layer_spread.hpp>

#include <cstddef>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kvbench::trace {
namespace {

/// Fewer layers rarely tell two methods apart.
constexpr std::size_t few_layers = 5;

/// "2, 5, 8, ..., 29", in full up to six numbers.
std::string shortened(std::span<const std::int64_t> layers) {
  if (layers.size() <= 6) return fmt::format("{}", fmt::join(layers, ", "));
  return fmt::format("{}, ..., {}", fmt::join(layers.first(3), ", "), layers.back());
}

}  // namespace

LayerSpread spread_of(std::span<const std::int64_t> layers, std::int64_t of) {
  const auto count = static_cast<std::int64_t>(layers.size());
  if (count == of) return LayerSpread::all;
  if (count < 2) return LayerSpread::alone;
  for (std::int64_t i = 0; i < count; ++i) {
    // The i-th part of the depth is [i of / count, (i + 1) of / count); half of a part more on both sides.
    const std::int64_t scaled = 2 * layers[static_cast<std::size_t>(i)] * count;
    if (scaled < (2 * i - 1) * of || scaled >= (2 * i + 3) * of) return LayerSpread::alone;
  }
  return LayerSpread::evenly_spaced;
}

std::optional<bool> layers_are_units(std::span<const std::int64_t> replayed, std::size_t used, std::int64_t of) {
  if (of == 0) return false;
  const LayerSpread spread = spread_of(replayed, of);
  if (spread == LayerSpread::alone) return std::nullopt;
  return spread == LayerSpread::evenly_spaced || used >= few_layers;
}

std::string describe_spread(std::span<const std::int64_t> layers, std::int64_t of) {
  const auto described = [&](const std::string& kind, const std::string& meaning) {
    const std::string part = of == 0 ? "" : fmt::format(" of {}", of);
    return fmt::format("{} ({}{}{}): {}", shortened(layers), layers.size(), part, kind, meaning);
  };
  switch (spread_of(layers, of)) {
    case LayerSpread::all:
      return fmt::format("all {}: comparisons hold for the whole model", of);
    case LayerSpread::evenly_spaced:
      return described(
          ", evenly spaced",
          layers.size() < few_layers
              ? "comparisons of relative errors hold for all layers, with intervals so wide that few are decided"
              : "comparisons of relative errors hold for all layers, with their interval over layers");
    case LayerSpread::alone:
      return layers.size() == 1 ? described("", "comparisons hold for this layer alone")
                                : described(", not evenly spaced", "comparisons hold for these layers alone");
  }
  return "";
}

}  // namespace kvbench::trace
