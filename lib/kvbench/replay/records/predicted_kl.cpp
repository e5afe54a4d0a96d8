// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/predicted_kl.hpp>

#include <algorithm>

namespace kvbench::replay {
namespace {

/// A grid of estimates [rows][cols] whose mean is the prediction, and of which the bootstrap draws rows and columns.
struct Grid {
  std::size_t cols;
  std::vector<double> values, counts;

  double& at(std::size_t row, std::size_t col) {
    values.resize(std::max(values.size(), (row + 1) * cols));
    counts.resize(values.size());
    counts[row * cols + col] = 1;
    return values[row * cols + col];
  }
};

/// (sum over layers of c)^2 / (2 T), mean over seeds.
double of_all_layers(const ProbeSums& prompt, std::size_t probe) {
  double squares = 0;
  for (std::size_t seed = 0; seed < prompt.seeds; ++seed) {
    double sum = 0;
    for (std::size_t layer = 0; layer < prompt.layers; ++layer) sum += prompt.at(layer, seed, probe);
    squares += sum * sum;
  }
  return squares / static_cast<double>(2 * prompt.scored * prompt.seeds);
}

/// c^2 / (2 T) of one layer, mean over probes and seeds.
double of_layer(const ProbeSums& prompt, std::size_t layer) {
  double squares = 0;
  for (std::size_t i = 0; i < prompt.seeds * prompt.probes; ++i) {
    const double c = prompt.sums[layer * prompt.seeds * prompt.probes + i];
    squares += c * c;
  }
  return squares / static_cast<double>(2 * prompt.scored * prompt.seeds * prompt.probes);
}

/// The columns are probes, or the layers of a sample, whose mean times their number is the sum over them. One prompt
/// cannot stand for others: its interval is over the columns alone, which become the rows that the bootstrap draws.
Grid estimates(std::span<const ProbeSums* const> prompts, const PredictedLayers& layers) {
  std::size_t columns = 0;
  for (const ProbeSums* p : prompts) columns = std::max(columns, layers.extrapolates ? p->layers : p->probes);
  const bool alone = prompts.size() == 1;
  Grid grid{.cols = alone ? 1 : columns};
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    const std::size_t count = layers.extrapolates ? prompts[p]->layers : prompts[p]->probes;
    for (std::size_t c = 0; c < count; ++c) {
      grid.at(alone ? c : p, alone ? 0 : c) = layers.extrapolates
                                                  ? layers.scale * static_cast<double>(count) * of_layer(*prompts[p], c)
                                                  : of_all_layers(*prompts[p], c);
    }
  }
  return grid;
}

}  // namespace

PredictedKl predict_kl(std::span<const ProbeSums> prompts, const PredictedLayers& layers) {
  std::vector<const ProbeSums*> known;
  for (const ProbeSums& prompt : prompts) {
    if (prompt.probes > 0) known.push_back(&prompt);
  }
  if (known.empty()) return {};
  const Grid grid = estimates(known, layers);
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < grid.values.size(); ++i) sum += grid.values[i], count += grid.counts[i];
  return {.mean = sum / count, .interval = bootstrap_mean(grid.values, grid.counts, grid.cols)};
}

}  // namespace kvbench::replay
