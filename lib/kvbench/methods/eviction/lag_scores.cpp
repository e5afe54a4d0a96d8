// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/eviction/lag_scores.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
namespace {

constexpr double least_range = 1e-30;  // below it fp32 does not hold the inverse

/// One over the range of each channel, 0 where it has none, from (largest, then smallest of each channel).
std::vector<double> inverse_ranges(const float* bounds, std::size_t channels) {
  std::vector<double> inverse(channels);
  for (std::size_t c = 0; c < channels; ++c) {
    const double range = static_cast<double>(bounds[c]) - static_cast<double>(bounds[channels + c]);
    inverse[c] = range > least_range ? 1 / range : 0;
  }
  return inverse;
}

/// Sums over channels of the squared differences between y and its mean over channels. These are distances between M x
/// and M min, where M scales each channel and takes the mean over channels away.
TokenNumbers squared_deviations(const Buffer<const float>& part, const float* bounds, Backend& backend) {
  const auto channels = static_cast<std::size_t>(part.cols());
  const std::vector<double> inverse = inverse_ranges(bounds, channels);
  std::vector<float> matrix(channels * channels), centre(channels);
  for (std::size_t j = 0; j < channels; ++j) {
    double sum = 0;
    for (std::size_t c = 0; c < channels; ++c) {
      const double weight = inverse[c] * ((j == c ? 1.0 : 0.0) - 1.0 / static_cast<double>(channels));
      matrix[j * channels + c] = static_cast<float>(weight);
      sum += weight * static_cast<double>(bounds[channels + c]);
    }
    centre[j] = static_cast<float>(sum);
  }
  const auto out = backend.allocate<float>(part.rows(), 1);
  backend.run(kernels::SquaredDistances<Buffer>{
      .points = projected(part, backend.adopt(std::move(matrix), part.cols(), part.cols()), backend),
      .centres = backend.adopt(std::move(centre), 1, part.cols()),
      .out = out});
  TokenNumbers numbers = on_host(Buffer<const float>(out), backend);
  return numbers.apply([](double x) { return std::min<double>(x, std::numeric_limits<float>::max()); });
}

}  // namespace

TokenNumbers lag_scores(const Buffer<const float>& rows, Index lag, Backend& backend) {
  const Index parts = rows.rows() / lag, channels = rows.cols();
  const auto bounds = backend.allocate<float>(parts, 2 * channels);
  backend.run(kernels::PageBounds<Buffer>{.rows = rows, .page = lag, .out = bounds});
  const std::vector<float> of_parts = backend.read(bounds);
  TokenNumbers scores(static_cast<std::size_t>((parts - 1) * lag));
  for (Index p = 0; p + 1 < parts; ++p) {
    const float* next = of_parts.data() + (p + 1) * 2 * channels;
    const TokenNumbers squares = squared_deviations(rows.slice(p * lag, lag), next, backend);
    scores[std::slice(static_cast<std::size_t>(p * lag), squares.size(), 1)] =
        softmax(std::sqrt(squares / static_cast<double>(std::max<Index>(1, channels - 1))));
  }
  return scores;
}

}  // namespace kvbench::methods
