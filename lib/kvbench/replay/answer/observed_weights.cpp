// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/observed_weights.hpp>

#include <cmath>

namespace kvbench::replay {

std::vector<Buffer<const float>> observed_weights(const methods::EntryTables& tables,
                                                  const std::vector<Buffer<float>>& logits, const HostState& state,
                                                  Backend& backend) {
  std::vector<Buffer<const float>> weights;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    std::vector<float> values = backend.read(logits[t]);
    const std::vector<float> weight_den = backend.read(tables[t].weight_den);
    const auto width = static_cast<std::size_t>(logits[t].cols());
    for (std::size_t k = 0; k < values.size(); ++k) {
      const std::size_t row = k / width;
      const float factor = weight_den.empty() ? 1 : weight_den[(tables[t].per_head ? row : 0) * width + k % width];
      values[k] = factor * std::exp(values[k] - state.max[row]) / state.den[row];
    }
    weights.push_back(backend.adopt(std::move(values), logits[t].rows(), logits[t].cols()));
  }
  return weights;
}

}  // namespace kvbench::replay
