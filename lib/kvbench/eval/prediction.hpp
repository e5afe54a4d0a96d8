// SPDX-License-Identifier: Apache-2.0
// How well an attention error predicts damage to the model's output: do configurations with larger errors do more
// damage?
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <kvbench/core/budget.hpp>
#include <kvbench/core/statistics.hpp>

namespace kvbench::eval {

/// One configuration. Both figures by document of the task; NaN where a document has none.
struct PredictionRow {
  std::string method;  ///< with its parameters
  Budget budget;
  std::vector<double> error, damage;  ///< [documents]; a larger error is a worse one
};

/// The configurations of one task; damage of different tasks is never compared.
struct PredictionGroup {
  std::string task;
  std::vector<PredictionRow> rows;
};

/// The share of pairs of methods at the same budget and task that a predictor orders as the damage does.
struct PairOrder {
  double share = NAN;
  Interval interval{NAN, NAN};  ///< 95 %, bootstrap over documents; NaN where a task has fewer than two
  std::size_t pairs = 0;
  std::vector<double> drawn;  ///< the share by resample of the documents, NaN where a resample has no such pair
};

/// Methods whose damage differs by no more than this factor are close: between these a choice is difficult.
inline constexpr double close_factor = 3;

struct Prediction {
  double spearman = NAN;  ///< rank correlation over the configurations of a task, mean over tasks
  Interval spearman_interval{NAN, NAN};
  PairOrder all, close;  ///< all pairs; those of close methods
  /// The same of all configurations but those of one method: the smallest and the largest over the methods.
  Interval spearman_without_one{NAN, NAN}, share_without_one{NAN, NAN};
  std::size_t configurations = 0, documents = 0;
};

/// Means over documents are compared. Equal errors count as half a pair; pairs of equal damage do not count. Rows
/// without any document that has both figures do not count.
Prediction predict(std::span<const PredictionGroup> groups, int resamples = 1000);

/// How much larger the share of `a` is than that of `b`, both from the same resamples of the same documents.
struct ShareDifference {
  double value = NAN;
  Interval interval{NAN, NAN};
  double p_value = NAN;  ///< two-sided, of "it is 0": twice the share of the resamples on the other side of 0
};
/// NaN where the two count different pairs.
ShareDifference difference(const PairOrder& a, const PairOrder& b);

/// What no predictor can be expected to exceed: how well the damage itself, measured elsewhere, orders the damage.
struct Ceiling {
  double all = NAN, close = NAN;  ///< shares of pairs, as in Prediction
};
/// Measured on one half of the documents of each task, against the other half; the mean over 200 random halves. NaN
/// where a task has fewer than two documents.
Ceiling half_against_half(std::span<const PredictionGroup> groups);
/// Measured in one group, against another group of the same task (another text); the mean over all ordered pairs.
Ceiling group_against_group(std::span<const PredictionGroup> groups);

/// By how much errors have grown at each layer: drift of the hidden state after the layer, divided by the root of the
/// sum of squares of the errors that this and all earlier layers have added to the residual stream. 1: independent
/// errors that the model passes on unchanged; more: it amplifies them. Both arrays by layer; NaN where a value is
/// missing or nothing was added.
std::vector<double> amplification(std::span<const double> drift, std::span<const double> residual);

/// Sum over layers of the damage by each layer alone, divided by the damage by all together, with the bootstrap
/// interval over documents. Both by document. NaN where the damage of all is 0.
struct Additivity {
  double ratio = NAN;
  Interval interval{NAN, NAN};
};
Additivity additivity(std::span<const double> sum_of_single, std::span<const double> together);

}  // namespace kvbench::eval
