// SPDX-License-Identifier: Apache-2.0
// What the errors of a replay do to the output of the model, to second order: docs/damage.md has the derivation.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <kvbench/core/statistics.hpp>
#include <kvbench/replay/metrics/info.hpp>

namespace kvbench::replay {

/// Above this many nats the quadratic form says that the damage is large, and not how large: mostly larger than itself,
/// and far smaller where outputs lie outside the values (subgen; docs/damage.md).
inline constexpr double largest_predicted = 0.15;

/// The root mean square of stream_err of a layer above which the second order says nothing about the damage: measured
/// KL was up to 100 times as large (docs/damage.md, the region).
inline constexpr double largest_stream_error = 0.3;

/// The prediction as a metric of comparisons, of texts with probes.
inline constexpr MetricInfo predicted_kl_info{
    .name = "kl_predicted",
    .meaning = "predicted KL of the model's next-token distributions, in nats per scored token",
    .better = Better::smaller,
    .limits = limits::at_least_zero,
    .applies = "texts with probes"};
constexpr bool is_prediction(const MetricInfo& metric) { return metric.name == predicted_kl_info.name; }

/// c of a prompt: for each probe the inner products of its gradients with the errors of the attention outputs of the
/// scored tokens, summed over the heads and queries of a layer.
struct ProbeSums {
  std::size_t scored = 0;  ///< T, tokens
  std::size_t layers = 0, seeds = 0, probes = 0;
  std::vector<double> sums;                ///< [layers][seeds][probes], row-major; layers without an error may lack
  std::vector<std::int64_t> numbers = {};  ///< of the layers that add() has met, in this order

  /// Adds the [probes] sums of a kv head to those of its layer; of a head without probes nothing. `seeds` is set.
  void add(std::int64_t layer, std::size_t seed, std::span<const double> head);
  double at(std::size_t layer, std::size_t seed, std::size_t probe) const {
    return sums[(layer * seeds + seed) * probes + probe];
  }
};

/// c^2 / (2 T) of a square, or of a sum of squares: nats per scored token.
inline double second_order(double squares, std::size_t scored) { return squares / static_cast<double>(2 * scored); }

/// Which layers a prediction is about.
struct PredictedLayers {
  bool extrapolates = false;  ///< the layers are a sample of those of the model: their damage is scaled up
  double scale = 1;           ///< layers of the model per replayed layer, where it extrapolates
  double factor = 1;          ///< measured / predicted of anchors of this kind (anchors.hpp)
  double spread = 0;          ///< standard error of the logarithm of this ratio
};

struct PredictedKl {
  double mean = NAN;  ///< nats per scored token, mean over prompts and seeds
  /// 95 %: over prompts, and over the layers of a sample (log_normal_interval()); of one prompt over its probes, or the
  /// layers of a sample
  Interval interval{NAN, NAN};
  double noise = NAN;     ///< standard error that the probes of these prompts leave / mean; NaN with one probe
  double measured = NAN;  ///< what the model itself had for this configuration on these prompts; NaN: not measured
  /// Where it is outside the region in which the second order holds: "layer 0, error 0.64 of the stream"; otherwise
  /// empty. `mean` is then no estimate of the damage, and the row is not ranked by it.
  std::string outside;
  std::string about;  ///< of which layers, and whether it is large; empty without a prediction
};

/// The errors of a layer relative to the residual stream after its attention (stream_err), of all its queries.
struct StreamError {
  double squares = 0, count = 0;

  /// NaN: not measured.
  void add(double error) {
    if (!std::isnan(error)) squares += error * error, count += 1;
  }
  double rms() const { return std::sqrt(squares / count); }
  /// Whether the second order says nothing about the damage there; not where a trace has no sketches.
  bool is_outside() const { return rms() > largest_stream_error; }
};

/// The layer with the largest root mean square, and this; NaN where no layer has one.
std::pair<std::int64_t, double> worst_layer(const std::map<std::int64_t, StreamError>& layers);

/// What PredictedKl::outside says of a layer; empty up to largest_stream_error, and where the error is NaN (unknown).
std::string outside_text(std::int64_t layer, double stream_error);

/// Whether the prediction is beyond its range.
inline bool is_large(const PredictedKl& kl) { return kl.mean > largest_predicted; }
inline bool is_outside(const PredictedKl& kl) { return !kl.outside.empty(); }

/// The predictions [units][seeds] of a prompt whose mean is that of the prompt, row-major. Units are probes, or, where
/// the layers are a sample of others, layers and probes [layers][probes].
std::vector<double> unit_predictions(const ProbeSums& prompt, const PredictedLayers& layers);

/// KL(full cache || method) per scored token: `factor` times the mean over probes of (sum over layers of c)^2 / (2 T),
/// or where the layers are a sample of others, `scale` times that of the sum of c^2. Prompts without probes are left
/// out; NaN without any.
PredictedKl predict_kl(std::span<const ProbeSums> prompts, const PredictedLayers& layers);

}  // namespace kvbench::replay
