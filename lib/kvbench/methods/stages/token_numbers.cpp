// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/stages/token_numbers.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <vector>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::methods {
Buffer<const float> as_scores(const TokenNumbers& numbers, Backend& backend, Index rows) {
  std::vector<float> scores(numbers.size());
  std::ranges::transform(numbers, scores.begin(), [](double x) { return static_cast<float>(x); });
  return backend.adopt(std::move(scores), rows, static_cast<Index>(numbers.size()) / rows);
}

TokenNumbers norms2(const Buffer<const float>& rows, Backend& backend) {
  const std::vector<double> host = squared_norms(rows, backend);
  return {host.data(), host.size()};
}

TokenNumbers norms(const Buffer<const float>& rows, Backend& backend) { return std::sqrt(norms2(rows, backend)); }

TokenNumbers cosines_with_mean(const Buffer<const float>& rows, Backend& backend) {
  const TokenNumbers lengths = norms(rows, backend);
  // Weights 1 / length make the mean one of directions, but for a factor; rows of zeros add nothing to it.
  std::vector<float> weights(lengths.size());
  std::ranges::transform(lengths, weights.begin(), [](double x) { return x > 1e-30 ? static_cast<float>(1 / x) : 1; });
  const auto mean = backend.allocate<float>(1, rows.cols());
  backend.run(kernels::MeanRows<Buffer>{.rows = rows,
                                        .labels = backend.adopt(std::vector<std::int32_t>(weights.size()), rows.rows()),
                                        .weights = backend.adopt(std::move(weights), rows.rows()),
                                        .out = mean,
                                        .mass = backend.allocate<float>(1)});
  const double of_mean = norms(mean, backend)[0];
  TokenNumbers cosines = on_host(projected(rows, mean, backend), backend);
  for (std::size_t i = 0; i < cosines.size(); ++i) {
    const double product = lengths[i] * of_mean;
    cosines[i] = product > 0 ? cosines[i] / product : 0;
  }
  return cosines;
}

TokenNumbers shares_in_blocks(const TokenNumbers& numbers, Index block) {
  TokenNumbers shares(numbers.size());
  const auto width = static_cast<std::size_t>(block);
  for (std::size_t begin = 0; begin < numbers.size(); begin += width) {
    const std::slice part(begin, std::min(width, numbers.size() - begin), 1);
    const TokenNumbers own = numbers[part];
    if (const double sum = own.sum(); sum > 0) shares[part] = TokenNumbers(own / sum);
  }
  return shares;
}

TokenNumbers ranks_in_blocks(const TokenNumbers& numbers, Index block) {
  TokenNumbers ranks(numbers.size());
  const auto width = static_cast<std::size_t>(block);
  for (std::size_t begin = 0; begin < numbers.size(); begin += width) {
    std::vector<std::size_t> order(std::min(width, numbers.size() - begin));
    std::iota(order.begin(), order.end(), begin);
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
      return numbers[a] != numbers[b] ? numbers[a] < numbers[b] : a > b;
    });
    for (std::size_t rank = 0; rank < order.size(); ++rank) ranks[order[rank]] = static_cast<double>(rank);
  }
  return ranks;
}

TokenNumbers softmax(const TokenNumbers& numbers) {
  if (numbers.size() == 0) return numbers;
  const TokenNumbers mass = std::exp(numbers - numbers.max());
  return mass / mass.sum();
}

TokenNumbers z_scores(const TokenNumbers& numbers) {
  if (numbers.size() == 0) return numbers;
  const auto count = static_cast<double>(numbers.size());
  const TokenNumbers centred = numbers - numbers.sum() / count;
  return centred / std::max(1e-6, std::sqrt((centred * centred).sum() / count));
}

TokenNumbers numbered(Index n) {
  TokenNumbers numbers(static_cast<std::size_t>(n));
  std::iota(std::begin(numbers), std::end(numbers), 0.0);
  return numbers;
}

TokenNumbers behind(Index count, const TokenNumbers& numbers) {
  TokenNumbers out(static_cast<std::size_t>(count) + numbers.size());
  out[std::slice(static_cast<std::size_t>(count), numbers.size(), 1)] = numbers;
  return out;
}

}  // namespace kvbench::methods
