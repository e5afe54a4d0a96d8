// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/predicted_kl.hpp>

#include <algorithm>

namespace kvbench::replay {
namespace {

/// A grid [rows][cols] of sums and numbers of estimates, of which the bootstrap draws rows and columns.
struct Grid {
  std::size_t cols;
  std::vector<double> sums, counts;

  void add(std::size_t row, std::size_t col, double estimate) {
    sums.resize(std::max(sums.size(), (row + 1) * cols));
    counts.resize(sums.size());
    sums[row * cols + col] += estimate;
    counts[row * cols + col] += 1;
  }
};

/// The columns are probes, or the layers of a sample. One prompt cannot stand for others: its interval is over the
/// columns alone, which become the rows that the bootstrap draws.
Grid estimates(std::span<const ProbeSums* const> prompts, const PredictedLayers& layers) {
  std::size_t columns = 0;
  for (const ProbeSums* p : prompts) columns = std::max(columns, layers.extrapolates ? p->layers : p->probes);
  const bool alone = prompts.size() == 1;
  Grid grid{.cols = alone ? 1 : columns};
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    const ProbeSums& prompt = *prompts[p];
    const std::vector<double> units = unit_predictions(prompt, layers);
    const std::size_t per_column = prompt.seeds * (layers.extrapolates ? prompt.probes : 1);
    for (std::size_t i = 0; i < units.size(); ++i)
      grid.add(alone ? i / per_column : p, alone ? 0 : i / per_column, units[i]);
  }
  return grid;
}

}  // namespace

std::vector<double> unit_predictions(const ProbeSums& prompt, const PredictedLayers& layers) {
  const std::size_t parts = layers.extrapolates ? prompt.layers : 1;
  const double scale = (layers.extrapolates ? layers.scale * static_cast<double>(prompt.layers) : 1) /
                       static_cast<double>(2 * prompt.scored);
  std::vector<double> units;
  for (std::size_t part = 0; part < parts; ++part) {
    for (std::size_t probe = 0; probe < prompt.probes; ++probe) {
      for (std::size_t seed = 0; seed < prompt.seeds; ++seed) {
        double c = 0;
        for (std::size_t layer = part; layer < prompt.layers; layer += parts) c += prompt.at(layer, seed, probe);
        units.push_back(scale * c * c);
      }
    }
  }
  return units;
}

PredictedKl predict_kl(std::span<const ProbeSums> prompts, const PredictedLayers& layers) {
  std::vector<const ProbeSums*> known;
  for (const ProbeSums& prompt : prompts) {
    if (prompt.probes > 0) known.push_back(&prompt);
  }
  if (known.empty()) return {};
  const Grid grid = estimates(known, layers);
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < grid.sums.size(); ++i) sum += grid.sums[i], count += grid.counts[i];
  return {.mean = sum / count, .interval = bootstrap_mean(grid.sums, grid.counts, grid.cols)};
}

}  // namespace kvbench::replay
