// SPDX-License-Identifier: Apache-2.0
// The squared error of unit vectors that TurboQuant rounds to b bits is at most sqrt(3) pi / 2 4^-b on average
// (arXiv 2504.19874, theorem 1). docs/theory/turboquant.distortion.md.
#include <kvbench/faithful/checks/checks.hpp>

#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include <kvbench/bounds/check/vectors.hpp>

namespace kvbench::faithful {
namespace {

constexpr Index distorted_keys = 16;
constexpr std::array paper_distortions = {0.36, 0.117, 0.03, 0.009};  // section 3.1, 1 to 4 bits
constexpr double distance_rounding = 0x1p-11 + 0x1p-18;  // of norms in f16 and of rows in fp32, relative to the row

/// Means over seeds and keys of |x - x'| / |x| and of its square.
struct Distances {
  double distance = 0, square = 0;
};

Distances distances_of(bounds::CheckContext& context, const std::vector<float>& keys, const KeyDecoder& decoder) {
  const Index d = context.subject->d(), n = static_cast<Index>(keys.size()) / d;
  Distances sums;
  for (Index trial = 0; trial < context.options.seeds; ++trial) {
    context.poll();
    const std::vector<float> decoded = decoder(keys, context.seed(trial));
    for (Index i = 0; i < n; ++i) {
      const auto key = row_of(keys, d, i);
      const double square = bounds::squared_distance(key, row_of(decoded, d, i)) / bounds::squared_norm(key);
      sums.square += square, sums.distance += std::sqrt(square);
    }
  }
  const auto cases = static_cast<double>(n * context.options.seeds);
  return {sums.distance / cases, sums.square / cases};
}

void add_distortion_rows(bounds::CheckContext& context, int bits, const Distances& mean) {
  const Index d = context.subject->d(), seeds = context.options.seeds;
  const std::string params = fmt::format("bits={};d={}", bits, d);
  const double bound = std::sqrt(3) * std::numbers::pi / 2 * std::pow(4, -bits);
  const double beyond = mean.distance - std::sqrt(bound) - distance_rounding * (1 + mean.distance);
  context
      .theorem({fmt::format("{} bit{}", bits, bits == 1 ? "" : "s"), params},
               {.measured = mean.square, .bound = bound, .literal = bound, .trivial = 1},
               fmt::format("mean of |x - x'|^2 / |x|^2 over {} seeds; trivial: decoding zeros", seeds))
      .p_value = std::isnan(beyond) ? 0
                 : beyond <= 0      ? 1
                                    : std::exp(-static_cast<double>((d - 1) * seeds) * beyond * beyond / 2);
  context.data({fmt::format("paper's value, b={}", bits), params},
               {.measured = mean.square, .bound = paper_distortions[static_cast<std::size_t>(bits - 1)]},
               "the same mean, and the one that the paper states for large d");
}

void run_turboquant_distortion(bounds::CheckContext& context) {
  check_distortion(context, [&](int bits) {
    return key_decoder(*context.subject, {.method = "turboquant", .settings = {{"bits", std::to_string(bits)}}},
                       context.backend);
  });
}

}  // namespace

void check_distortion(bounds::CheckContext& context, const DecoderOfBits& decoder) {
  const std::vector<float> keys = ordinary_keys(*context.subject, distorted_keys);
  for (int bits = 1; bits <= static_cast<int>(paper_distortions.size()); ++bits)
    add_distortion_rows(context, bits, distances_of(context, keys, decoder(bits)));
}

bounds::Check turboquant_distortion() {
  return {.id = "turboquant.distortion",
          .paper = "TurboQuant, arXiv 2504.19874, theorem 1",
          .statement = "the expected squared error of a unit vector in b bits is at most sqrt(3) pi / 2 4^-b",
          .run = run_turboquant_distortion};
}

}  // namespace kvbench::faithful
