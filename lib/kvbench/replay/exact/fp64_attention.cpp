// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/exact/fp64_attention.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace kvbench::replay {
namespace {

/// <x, y>. A single sum would wait for each addition before it starts the next one.
double dot(std::span<const float> x, std::span<const float> y) {
  std::array<double, 8> sums{};
  std::size_t c = 0;
  for (; c + sums.size() <= x.size(); c += sums.size()) {
    for (std::size_t k = 0; k < sums.size(); ++k) sums[k] += double{x[c + k]} * double{y[c + k]};
  }
  double sum = 0;
  for (; c < x.size(); ++c) sum += double{x[c]} * double{y[c]};
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace

Fp64Attention fp64_attention(std::span<const float> query, std::span<const float> keys, std::span<const float> values,
                             Index first, Index last, double scale) {
  const std::size_t d = query.size(), dv = values.size() / (keys.size() / d);
  const auto begin = static_cast<std::size_t>(first), end = static_cast<std::size_t>(last);
  std::vector<double> logits;
  for (std::size_t j = begin; j < end; ++j) logits.push_back(scale * dot(query, keys.subspan(j * d, d)));
  const double max = *std::ranges::max_element(logits);

  double sum = 0;
  std::vector<double> out(dv, 0.0);
  for (std::size_t j = begin; j < end; ++j) {
    const double weight = std::exp(logits[j - begin] - max);
    sum += weight;
    for (std::size_t c = 0; c < dv; ++c) out[c] += weight * double{values[j * dv + c]};
  }
  for (double& x : out) x /= sum;
  return {std::move(out), max + std::log(sum)};
}

}  // namespace kvbench::replay
