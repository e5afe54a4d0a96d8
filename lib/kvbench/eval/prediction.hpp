// SPDX-License-Identifier: Apache-2.0
// How well an attention error predicts damage to the model's output: do configurations with larger errors do more
// damage?
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <kvbench/core/statistics.hpp>

namespace kvbench::eval {

/// One configuration. Both figures by document of the task; NaN where a document has none.
struct PredictionRow {
  std::string method, budget;         ///< method with its parameters
  std::vector<double> error, damage;  ///< [documents]; a larger error is a worse one
};

/// The configurations of one task; damage of different tasks is never compared.
struct PredictionGroup {
  std::string task;
  std::vector<PredictionRow> rows;
};

struct Prediction {
  double spearman = NAN;  ///< rank correlation over the configurations of a task, mean over tasks
  /// share of pairs of methods at the same budget and task that the error orders as the damage does
  double agreement = NAN;
  Interval spearman_interval{NAN, NAN},
      agreement_interval{NAN, NAN};  ///< 95 %, bootstrap over documents; NaN for fewer than two
  /// The same of all configurations but those of one method: the smallest and the largest over the methods.
  Interval spearman_without_one{NAN, NAN}, agreement_without_one{NAN, NAN};
  std::size_t configurations = 0, pairs = 0, documents = 0;
};

/// Means over documents are compared. Equal errors count as half a pair; pairs of equal damage do not count. Rows
/// without any document that has both figures do not count.
Prediction predict(std::span<const PredictionGroup> groups, int resamples = 1000);

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
