// SPDX-License-Identifier: Apache-2.0
// Declared work of every operation; the formulas are documented beside each declaration.
#include <kvbench/kernels/backend.hpp>

namespace kvbench::kernels {

namespace {

template <class T>
double bytes(const Buffer<T>& buffer) {
  return static_cast<double>(buffer.size()) * sizeof(T);
}
template <class T>
double size(const Buffer<T>& buffer) {
  return static_cast<double>(buffer.size());
}

}  // namespace

Cost cost(const ExactAttention<Buffer>& a) {
  const double pairs = static_cast<double>(a.queries.rows()) * static_cast<double>(a.keys.rows());
  return {pairs * static_cast<double>(2 * a.keys.cols() + 2 * a.values.cols() + 4),
          bytes(a.queries) + bytes(a.keys) + bytes(a.values) + bytes(a.out) + bytes(a.max) + bytes(a.log_sum_exp) +
              bytes(a.scores)};
}

Cost cost(const WeightedAttention<Buffer>& a) {
  const bool computed = !a.scores.present() || a.own_keys.present();
  const Index d = computed ? a.queries.cols() : 0;
  const Index dv = a.values.cols();
  const double slots = static_cast<double>(a.queries.rows()) * static_cast<double>(a.ids.cols());
  const double entries = size(a.ids) * static_cast<double>((d + dv)) * sizeof(float);
  const double gathered = computed ? 0 : slots * sizeof(float);
  return {slots * static_cast<double>(2 * d + 2 * dv + 4),
          bytes(a.queries) + bytes(a.ids) + bytes(a.weight_num) + bytes(a.weight_den) + entries + gathered +
              2 * (bytes(a.max) + bytes(a.den) + bytes(a.num)) + bytes(a.logits)};
}

Cost cost(const TopK<Buffer>& a) {
  const double out = bytes(a.ids) + bytes(a.best) + bytes(a.rest);
  if (a.among.present()) return {size(a.among), 2 * bytes(a.among) + out};
  return {size(a.scores), bytes(a.scores) + out};
}

Cost cost(const GatherRows<Buffer>& a) { return {0, bytes(a.ids) + 2 * bytes(a.out)}; }
Cost cost(const SquaredNorms<Buffer>& a) { return {2 * size(a.rows), bytes(a.rows) + bytes(a.out)}; }
Cost cost(const RotateRows<Buffer>& a) { return {3 * size(a.rows), bytes(a.rows) + bytes(a.offsets) + bytes(a.out)}; }
Cost cost(const ColumnSums<Buffer>& a) { return {3 * size(a.scores), bytes(a.scores) + bytes(a.log_sum_exp) + bytes(a.out)}; }
Cost cost(const SoftmaxRows<Buffer>& a) {
  return {4 * size(a.scores), bytes(a.scores) + bytes(a.log_sum_exp) + bytes(a.out) + bytes(a.norm)};
}
Cost cost(const PoolRows<Buffer>& a) {
  return {a.mode == Pooling::none ? 0 : size(a.rows) * static_cast<double>(a.kernel), bytes(a.rows) + bytes(a.out)};
}
Cost cost(const ReduceRows<Buffer>& a) { return {size(a.rows), bytes(a.rows) + bytes(a.out)}; }
Cost cost(const WidenHalf<Buffer>& a) { return {0, bytes(a.in) + bytes(a.out)}; }
Cost cost(const NarrowHalf<Buffer>& a) { return {0, bytes(a.in) + bytes(a.out)}; }

Cost cost(const SquaredDistances<Buffer>& a) {
  return {3 * size(a.out) * static_cast<double>(a.points.cols()), bytes(a.points) + bytes(a.centres) + bytes(a.out)};
}
Cost cost(const KCenter<Buffer>& a) {
  const double k = static_cast<double>(a.order.rows());
  return {3 * k * size(a.points), k * bytes(a.points) + bytes(a.order) + bytes(a.radius2)};
}
Cost cost(const LeaderClusters<Buffer>& a) {
  return {3 * size(a.points) * static_cast<double>(a.representatives.rows()),
          bytes(a.points) + bytes(a.representatives) + bytes(a.labels)};
}

Cost cost(const NormalizeRows<Buffer>& a) { return {3 * size(a.rows), bytes(a.rows) + bytes(a.out)}; }
Cost cost(const InnerProducts<Buffer>& a) {
  return {2 * size(a.out) * static_cast<double>(a.a.cols()), bytes(a.a) + bytes(a.b) + bytes(a.out)};
}
Cost cost(const BestMatch<Buffer>& a) {
  const double pairs = a.pairs > 0 ? static_cast<double>(a.pairs)
                                   : static_cast<double>(a.points.rows()) * static_cast<double>(a.candidates.rows());
  return {2 * pairs * static_cast<double>(a.points.cols()),
          bytes(a.points) + bytes(a.candidates) + bytes(a.best) + bytes(a.score)};
}
Cost cost(const MeanRows<Buffer>& a) {
  return {2 * size(a.rows), bytes(a.rows) + bytes(a.labels) + bytes(a.weights) + bytes(a.out) + bytes(a.mass)};
}

Cost cost(const PageBounds<Buffer>& a) { return {2 * size(a.rows), bytes(a.rows) + bytes(a.out)}; }
Cost cost(const SplitSigns<Buffer>& a) { return {size(a.out), bytes(a.rows) + bytes(a.out)}; }

Cost cost(const BalanceWalk<Buffer>& a) {
  const double n = static_cast<double>(a.keys.rows()), blocks = static_cast<double>(a.shift.rows());
  const double pairs = blocks == 0 ? 0 : n * n / blocks / 2;
  return {pairs * static_cast<double>(2 * a.keys.cols() + 2 * a.values.cols() + 4),
          bytes(a.keys) + bytes(a.values) + bytes(a.weights) + bytes(a.uniforms) + bytes(a.signs)};
}

Cost cost(const SpreadRows<Buffer>& a) {
  const double elements = size(a.sources) * static_cast<double>(a.count) * static_cast<double>(a.rows.cols());
  return {2 * elements, 2 * sizeof(float) * elements + bytes(a.sources)};
}

Cost cost(const PhiloxFill<Buffer>& a) { return {0, bytes(a.out)}; }

}  // namespace kvbench::kernels
