// SPDX-License-Identifier: Apache-2.0
#include "byte_centres.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

struct Farthest {
  float distance;
  std::int32_t index;
};

/// The farthest point of each lane, the lowest index on ties: points come in increasing order.
struct FarthestLanes {
  Vec best = broadcast(-kInfinity);
  IntVec index = {};

  void update(Vec distances, Index first) {
    const IntVec better = distances > best;
    best = select(better, distances, best);
    index = select(better, lane_numbers(first), index);
  }

  Farthest farthest() const {
    Farthest all = {best[0], index[0]};
    for (int i = 1; i < W; ++i)
      if (best[i] > all.distance || (best[i] == all.distance && index[i] < all.index)) all = {best[i], index[i]};
    return all;
  }
};

constexpr int kPassStrips = 4;

/// Lowers the distances of all points to the nearest centre by the new one and finds the farthest point. Taken points hold a
/// negative distance and so keep it.
Farthest lower_and_find(const float* strips, const float* centre, Index padded, Index d, float* nearest) {
  FarthestLanes lanes;
  for (Index begin = 0; begin < padded; begin += kPassStrips * kStrip) {
    Vec distances[kPassStrips][2];
    distance_strips(centre, strips + begin * d, d, distances);
#pragma GCC unroll 4
    for (int s = 0; s < kPassStrips; ++s)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const Index first = begin + s * kStrip + v * W;
        const Vec old = load(nearest + first);
        const Vec lowered = select(distances[s][v] < old, distances[s][v], old);
        store(nearest + first, lowered);
        lanes.update(lowered, first);
      }
  }
  return lanes.farthest();
}

#if KVBENCH_WIDTH == 16
/// The same by the filter of byte_centres.hpp.
Farthest lower_and_find(ByteCentres& set, const float* centre, float* nearest) {
  lower(set, centre, nearest);
  FarthestLanes lanes;
  for (Index i = 0; i < set.padded; i += W) lanes.update(load(nearest + i), i);
  return lanes.farthest();
}

/// Making bytes of a row and the first passes, which change most points, must be earned by the others: as measured.
bool filter_pays(const KCenter<HostMatrix>& op) { return op.order.rows * op.points.cols >= 4096; }
#endif

}  // namespace

template <>
void run(const KCenter<HostMatrix>& op, Context& context) {
  constexpr float taken = -1;
  constexpr float padding = -2;
  const Index n = op.points.rows;
  const Index d = op.points.cols;
  if (op.order.rows == 0) return;
  const Index padded = round_up(n, kPassStrips * kStrip);
  auto* nearest = scratch<float>(context, 1, padded);
  for (Index i = 0; i < padded; ++i) nearest[i] = i < n ? kInfinity : padding;

  const auto take_all = [&](auto taken_out, auto next_of) {
    Farthest next = {kInfinity, static_cast<std::int32_t>(op.start)};
    for (Index k = 0; k < op.order.rows; ++k) {
      op.order.data[k * op.order.stride] = next.index;
      op.radius2.data[k * op.radius2.stride] = next.distance;
      nearest[next.index] = taken;
      taken_out(next.index);
      if (k + 1 < op.order.rows) next = next_of(op.points.data + next.index * op.points.stride);
    }
  };
#if KVBENCH_WIDTH == 16
  if (wants_filter(context, filter_pays(op), d)) {
    ByteCentres set = byte_centres(op.points.data, op.points.stride, n, padded, d, context);
    if (set_rows(set, scratch<std::uint8_t>(context, 14, kStrip * byte_pitch(d))))
      return take_all([&](Index point) { take(set, point); },
                      [&](const float* centre) { return lower_and_find(set, centre, nearest); });
  }
#endif
  auto* strips = scratch<float>(context, 0, padded * d);
  pack_strips(op.points.data, op.points.stride, n, d, strips);
  for (Index i = round_up(n, kStrip) * d; i < padded * d; ++i) strips[i] = 0;
  take_all([](Index) {}, [&](const float* centre) { return lower_and_find(strips, centre, padded, d, nearest); });
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
