// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include "../kernels.hpp"

namespace kvbench::kernels::ref {

namespace {

using Op = WeightedAttention<HostMatrix>;
constexpr double kSkipped = -std::numeric_limits<double>::infinity();

Index table_row(const Op& op, Index row) {
  const Index m = op.first.rows;
  return (op.per_head ? row / m : 0) * (op.per_query ? m : 1) + (op.per_query ? row % m : 0);
}

double logit_of(const Op& op, Index row, Index table, Index slot) {
  const std::int32_t id = op.ids(table, slot);
  const Index query = row % op.first.rows;
  if (id < 0 || id < op.first[query] || id >= op.last[query]) return kSkipped;
  if (op.own_keys.empty() && !op.scores.empty()) return op.scores(row, id);
  const float* key = op.own_keys.empty() ? op.keys.row(id) : op.own_keys.row(table * op.ids.cols + slot);
  double dot = 0;
  for (Index c = 0; c < op.queries.cols; ++c) dot += static_cast<double>(op.queries(row, c)) * key[c];
  return op.scale * dot;
}

/// Adds the slots of a table row to the state of a query row. The state keeps the maximum in fp32, so numerator and
/// denominator refer to the rounded one.
void add(const Op& op, Index row, Index table, const std::vector<double>& logits) {
  double max = op.max[row];
  for (double logit : logits) max = std::max(max, logit);
  max = static_cast<float>(max);
  if (max == kSkipped) return;

  const double correction = std::exp(op.max[row] - max);
  double den = op.den[row] * correction;
  std::vector<double> num(static_cast<std::size_t>(op.num.cols));
  for (std::size_t c = 0; c < num.size(); ++c) num[c] = op.num(row, static_cast<Index>(c)) * correction;

  for (Index slot = 0; slot < op.ids.cols; ++slot) {
    const double logit = logits[static_cast<std::size_t>(slot)];
    if (logit == kSkipped) continue;
    const double weight = std::exp(logit - max);
    const double weight_num = op.weight_num.empty() ? weight : weight * op.weight_num(table, slot);
    const float* value =
        op.own_values.empty() ? op.values.row(op.ids(table, slot)) : op.own_values.row(table * op.ids.cols + slot);
    den += op.weight_den.empty() ? weight : weight * op.weight_den(table, slot);
    for (std::size_t c = 0; c < num.size(); ++c) num[c] += weight_num * value[c];
  }

  op.max[row] = static_cast<float>(max);
  op.den[row] = static_cast<float>(den);
  for (std::size_t c = 0; c < num.size(); ++c) op.num(row, static_cast<Index>(c)) = static_cast<float>(num[c]);
}

}  // namespace

template <>
void run(const Op& op, Context&) {
  std::vector<double> logits(static_cast<std::size_t>(op.ids.cols));
  for (Index row = 0; row < op.queries.rows; ++row) {
    const Index table = table_row(op, row);
    for (Index slot = 0; slot < op.ids.cols; ++slot) {
      const double logit = logit_of(op, row, table, slot);
      logits[static_cast<std::size_t>(slot)] = logit;
      if (!op.logits.empty()) op.logits(row, slot) = static_cast<float>(logit);
    }
    add(op, row, table, logits);
  }
}

}  // namespace kvbench::kernels::ref
