// SPDX-License-Identifier: Apache-2.0
#include "distance_tile.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

struct Farthest {
  float distance;
  std::int32_t index;
};

/// One pass over all points: lowers their distances to the nearest centre by the new one and finds the farthest point, the
/// lowest index on ties. Taken points hold a negative distance and so keep it.
Farthest lower_and_find(const float* strips, const float* centre, Index padded, Index d, float* nearest) {
  constexpr int kVectors = 8;  // independent sums, enough to keep the multipliers busy
  static_assert(kVectors * W == 4 * kStrip);
  Vec best = broadcast(-kInfinity);
  IntVec best_index = {};
  const IntVec lanes = lane_numbers();
  for (Index begin = 0; begin < padded; begin += 4 * kStrip) {
    Vec acc[kVectors] = {};
    for (Index c = 0; c < d; ++c) {
      const Vec x = broadcast(centre[c]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const Vec difference = load(strips + (begin + v / 2 * kStrip) * d + c * kStrip + v % 2 * W) - x;
        acc[v] = fma(difference, difference, acc[v]);
      }
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const Vec old = load(nearest + begin + v * W);
      const Vec lowered = select(acc[v] < old, acc[v], old);
      store(nearest + begin + v * W, lowered);
      const IntVec better = lowered > best;
      best = select(better, lowered, best);
      best_index = select(better, lanes + static_cast<std::int32_t>(begin + v * W), best_index);
    }
  }
  Farthest farthest = {best[0], best_index[0]};
  for (int i = 1; i < W; ++i)
    if (best[i] > farthest.distance || (best[i] == farthest.distance && best_index[i] < farthest.index))
      farthest = {best[i], best_index[i]};
  return farthest;
}

}  // namespace

template <>
void run(const KCenter<HostMatrix>& op, Context& context) {
  constexpr float taken = -1;
  constexpr float padding = -2;
  const Index n = op.points.rows;
  const Index d = op.points.cols;
  if (op.order.rows == 0) return;
  const Index padded = round_up(n, 4 * kStrip);
  auto* strips = scratch<float>(context, 0, padded * d);
  auto* nearest = scratch<float>(context, 1, padded);
  pack_strips(op.points.data, op.points.stride, n, d, strips);
  for (Index i = round_up(n, kStrip) * d; i < padded * d; ++i) strips[i] = 0;
  for (Index i = 0; i < padded; ++i) nearest[i] = i < n ? kInfinity : padding;

  Farthest next = {kInfinity, static_cast<std::int32_t>(op.start)};
  for (Index k = 0; k < op.order.rows; ++k) {
    op.order.data[k * op.order.stride] = next.index;
    op.radius2.data[k * op.radius2.stride] = next.distance;
    nearest[next.index] = taken;
    if (k + 1 < op.order.rows)
      next = lower_and_find(strips, op.points.data + next.index * op.points.stride, padded, d, nearest);
  }
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
