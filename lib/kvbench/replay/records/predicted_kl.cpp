// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/records/predicted_kl.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace kvbench::replay {
namespace {

/// What is known of the mean of one text.
struct TextMean {
  double mean = 0;
  double noise = NAN;          ///< standard error that its probes leave
  std::vector<double> layers;  ///< of a sample of layers: what each adds, as if all layers were like it
};

TextMean mean_of(const ProbeSums& text, const PredictedLayers& layers) {
  const std::vector<double> units = unit_predictions(text, layers);  // [parts][probes][seeds]
  const std::size_t parts = layers.extrapolates ? text.layers : 1, per_part = text.probes * text.seeds;
  std::vector<double> probes(text.probes), by_part(parts);
  for (std::size_t i = 0; i < units.size(); ++i) {
    probes[i % per_part / text.seeds] += units[i] / static_cast<double>(parts * text.seeds);
    by_part[i / per_part] += units[i] / static_cast<double>(per_part);
  }
  TextMean out{.mean = mean(probes)};
  if (probes.size() > 1) out.noise = standard_error(probes);
  if (layers.extrapolates) out.layers = std::move(by_part);
  return out;
}

/// The relative standard error of the mean over a sample of layers, of which texts agree; 0 where all layers are there.
double error_of_layers(std::span<const TextMean> texts) {
  std::vector<double> layers(texts.front().layers.size());
  if (layers.empty()) return 0;
  for (const TextMean& text : texts) {
    for (std::size_t l = 0; l < std::min(layers.size(), text.layers.size()); ++l) layers[l] += text.layers[l];
  }
  return layers.size() < 2 ? NAN : standard_error(layers) / mean(layers);
}

/// An interval of a positive value that a factor widens whose logarithm has this standard error.
Interval widened(double value, const Interval& interval, double error) {
  const double more = normal_quantile(0.975) * error;
  return {value * std::exp(-std::hypot(std::log(value / interval.lo), more)),
          value * std::exp(std::hypot(std::log(interval.hi / value), more))};
}

Interval interval_of(std::span<const TextMean> texts, const ProbeSums& first) {
  std::vector<double> means;
  for (const TextMean& text : texts) means.push_back(text.mean);
  const double layers = error_of_layers(texts);
  if (means.size() > 1) return log_normal_interval(means, layers);
  if (texts[0].layers.empty()) return mean_square_interval(means[0], static_cast<double>(first.probes));
  const double factor = std::exp(student_bound(0.95, static_cast<double>(texts[0].layers.size()) - 1) * layers);
  return {means[0] / factor, means[0] * factor};
}

/// The standard error of the mean over texts that their probes leave, relative to the mean.
double noise_of(std::span<const TextMean> texts) {
  double sum = 0, squares = 0;
  for (const TextMean& text : texts) sum += text.mean, squares += text.noise * text.noise;
  return std::sqrt(squares) / sum;
}

}  // namespace

std::pair<std::int64_t, double> worst_layer(const std::map<std::int64_t, StreamError>& layers) {
  std::pair<std::int64_t, double> worst{0, NAN};
  for (const auto& [layer, errors] : layers) {
    const double error = errors.rms();
    if (!(error <= worst.second) && !std::isnan(error)) worst = {layer, error};
  }
  return worst;
}

std::string outside_text(std::int64_t layer, double stream_error) {
  if (!(stream_error > largest_stream_error)) return "";
  return fmt::format("layer {}, error {:.2g} of the stream", layer, stream_error);
}

void ProbeSums::add(std::int64_t layer, std::size_t seed, std::span<const double> head) {
  if (head.empty()) return;
  const auto known = std::ranges::find(numbers, layer);
  const auto row = static_cast<std::size_t>(known - numbers.begin());
  if (known == numbers.end()) numbers.push_back(layer);
  layers = numbers.size(), probes = head.size();
  sums.resize(layers * seeds * probes);
  double* const to = sums.data() + (row * seeds + seed) * probes;
  for (std::size_t r = 0; r < probes; ++r) to[r] += head[r];
}

std::vector<double> unit_predictions(const ProbeSums& prompt, const PredictedLayers& layers) {
  const std::size_t parts = layers.extrapolates ? prompt.layers : 1;
  const double scale = second_order(
      layers.factor * (layers.extrapolates ? layers.scale * static_cast<double>(prompt.layers) : 1), prompt.scored);
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
  std::vector<TextMean> texts;
  const ProbeSums* first = nullptr;
  for (const ProbeSums& prompt : prompts) {
    if (prompt.probes == 0) continue;
    if (first == nullptr) first = &prompt;
    texts.push_back(mean_of(prompt, layers));
  }
  if (texts.empty()) return {};
  double sum = 0;
  for (const TextMean& text : texts) sum += text.mean;
  const double mean = sum / static_cast<double>(texts.size());
  if (mean == 0) return {.mean = 0, .interval = {0, 0}, .noise = 0};
  const Interval interval = interval_of(texts, *first);
  return {.mean = mean,
          .interval = layers.spread > 0 ? widened(mean, interval, layers.spread) : interval,
          .noise = noise_of(texts)};
}

}  // namespace kvbench::replay
