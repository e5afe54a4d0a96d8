// SPDX-License-Identifier: Apache-2.0
#include <apps/kvdump/self_check.hpp>

#include <algorithm>
#include <cmath>
#include <span>

namespace kvbench::kvdump {
namespace {

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define KVDUMP_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define KVDUMP_CLONES
#endif

/// out[j] += factor * in[j] in fp64, so that the measured error is that of the model. Inner loop of both products; it
/// is vectorised without reordering sums.
inline void add_scaled(double factor, const float* in, double* out, std::int64_t count) {
  for (std::int64_t j = 0; j < count; ++j) out[j] += factor * static_cast<double>(in[j]);
}

/// <q, k> for the keys [first, first + dots.size()), stored transposed [d, n], in tiles whose sums stay in the cache.
KVDUMP_CLONES void dot_products(const float* query, const std::vector<float>& transposed, std::int64_t n,
                                std::int64_t d, std::int64_t first, std::span<double> dots) {
  constexpr std::int64_t tile = 1024;
  const auto count = static_cast<std::int64_t>(dots.size());
  std::fill(dots.begin(), dots.end(), 0.0);
  for (std::int64_t begin = 0; begin < count; begin += tile) {
    for (std::int64_t c = 0; c < d; ++c) {
      add_scaled(query[c], &transposed[c * n + first + begin], &dots[begin], std::min(tile, count - begin));
    }
  }
}

/// Replaces <q, k> by unnormalised softmax weights and returns their sum.
double weights_of(const LayerParameters& parameters, std::span<double> dots) {
  const double cap = parameters.softcap;
  for (double& logit : dots) {
    logit *= parameters.scale;
    if (cap > 0) logit = cap * std::tanh(logit / cap);
  }
  const double max = *std::max_element(dots.begin(), dots.end());
  double sum = 0;
  for (double& logit : dots) sum += logit = std::exp(logit - max);
  return sum;
}

/// sum_j weights[j] values[j], unnormalised; values [count, dv].
KVDUMP_CLONES void weighted_sum(std::span<const double> weights, const float* values, std::span<double> z) {
  std::fill(z.begin(), z.end(), 0.0);
  const auto dv = static_cast<std::int64_t>(z.size());
  for (std::size_t j = 0; j < weights.size(); ++j) {
    add_scaled(weights[j], values + static_cast<std::int64_t>(j) * dv, z.data(), dv);
  }
}

std::vector<float> transposed_keys(const LayerCapture& capture, std::int64_t kv_head) {
  const std::int64_t n = capture.num_tokens, d = capture.head_dim;
  std::vector<float> transposed(static_cast<std::size_t>(n * d));
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t c = 0; c < d; ++c) transposed[c * n + j] = capture.keys[(kv_head * n + j) * d + c];
  }
  return transposed;
}

}  // namespace

double output_error(const LayerCapture& capture, std::int64_t query_head) {
  const std::int64_t n = capture.num_tokens, d = capture.head_dim, dv = capture.value_dim;
  const auto m = static_cast<std::int64_t>(capture.query_positions.size());
  const std::int64_t kv_head = query_head / (capture.query_heads / capture.kv_heads);
  const auto transposed = transposed_keys(capture, kv_head);
  std::vector<double> dots(static_cast<std::size_t>(n)), z(static_cast<std::size_t>(dv));
  double error = 0, norm = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    const std::int64_t last = capture.query_positions[i] + 1;
    const std::int64_t first =
        capture.parameters.window > 0 ? std::max<std::int64_t>(0, last - capture.parameters.window) : 0;
    const std::span<double> weights(dots.data(), static_cast<std::size_t>(last - first));
    dot_products(&capture.queries[(query_head * m + i) * d], transposed, n, d, first, weights);
    const double sum = weights_of(capture.parameters, weights);
    weighted_sum(weights, &capture.values[(kv_head * n + first) * dv], z);
    const float* model = &capture.output[(query_head * m + i) * dv];
    for (std::int64_t c = 0; c < dv; ++c) {
      const double difference = z[c] / sum - model[c];
      error += difference * difference;
      norm += static_cast<double>(model[c]) * model[c];
    }
  }
  return error == 0 ? 0 : std::sqrt(error / norm);
}

}  // namespace kvbench::kvdump
