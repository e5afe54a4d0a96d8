// SPDX-License-Identifier: Apache-2.0
// Greedy k-center that computes few distances. The distance of a point to its nearest centre never grows, so the
// distance to the nearest of the first centres is an upper bound, and a point needs no further comparison while the
// farthest point lies beyond that bound. The points above a threshold are the front, which is compared with every new
// centre. Once no point of the front is above the threshold any more, the threshold is lowered, and the points above
// the new one are compared with the centres that they have not been compared with, until they fall below it.
#include "distance_tile.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

constexpr float kTaken = -1, kPadding = -2;
constexpr int kPassStrips = 4;

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

/// Every point, and the centres so far.
struct Points {
  const float* rows;
  Index stride, count, padded, d;
  float* nearest;  // distance to the nearest of the first known[i] centres; kTaken: is one; kPadding: no point
  std::int32_t* known;
  float* centres;  // as strips
  Index taken;     // centres

  const float* row(Index i) const { return rows + i * stride; }

  void take(Index point) {
    for (Index c = 0; c < d; ++c) centres[taken / kStrip * kStrip * d + c * kStrip + taken % kStrip] = row(point)[c];
    ++taken;
    nearest[point] = kTaken;
  }
};

/// The points at or above a threshold, in increasing order; they have been compared with all centres.
struct Front {
  float threshold = kInfinity;
  Index count = 0;
  std::int32_t* points = nullptr;
  float* nearest = nullptr;
  float* strips = nullptr;
};

/// Lowers the distances of up to kTileRows points by the centres [first, first + W), of which `used` exist.
template <int Rows>
void meet(Points& all, const std::int32_t* points, Index first, IntVec used) {
  const float* rows[Rows];
  for (int r = 0; r < Rows; ++r) rows[r] = all.row(points[r]);
  Vec distances[Rows];
  distance_lanes<Rows>(rows, all.centres + first / kStrip * kStrip * all.d + first % kStrip, all.d, distances);
  for (int r = 0; r < Rows; ++r) {
    float& own = all.nearest[points[r]];
    const Vec old = broadcast(own);
    const IntVec nearer = used & (distances[r] < old);
    if (bits(nearer) != 0)
      own = fold(select(nearer, distances[r], old), [](Vec a, Vec b) { return select(a < b, a, b); })[0];
  }
}

constexpr Index kCatchUp = 256;

/// Compares points [count] with the centres that they have not been compared with, until they fall below the threshold.
void catch_up(Points& all, std::int32_t* points, Index count, float threshold) {
  Index first = all.taken;
  for (Index p = 0; p < count; ++p) first = min(first, all.known[points[p]]);
  std::int32_t behind[kCatchUp];
  for (first = first / W * W; first < all.taken && count > 0; first += W) {
    const Index end = min(first + W, all.taken);
    Index above = 0, waiting = 0;
    for (Index p = 0; p < count; ++p) {
      const std::int32_t point = points[p];
      if (all.nearest[point] < threshold) continue;
      points[above++] = point;
      if (all.known[point] >= end) continue;
      behind[waiting++] = point;
      all.known[point] = static_cast<std::int32_t>(end);
    }
    count = above;
    const IntVec used = lane_numbers(first) < broadcast(static_cast<std::int32_t>(end));
    for (Index p = 0; p < waiting; p += kTileRows)
      with_rows(min(kTileRows, waiting - p), [&]<int Rows>() { meet<Rows>(all, behind + p, first, used); });
  }
}

/// Appends the points of lanes [i, i + W) from the threshold on.
inline Index list_above(const Points& all, Index i, float threshold, std::int32_t* out) {
  return compress(lane_numbers(i), bits(load(all.nearest + i) >= broadcast(threshold)), out);
}

/// Lowers the threshold to a share of the largest known distance, and compares the points above it with all centres.
void lower_threshold(Points& all, Front& front) {
  constexpr float share = 0.9f;  // of the square: as measured
  Vec farthest = broadcast(-kInfinity);
  for (Index i = 0; i < all.padded; i += W) farthest = max(farthest, load(all.nearest + i));
  front.threshold = max(farthest) * share;
  std::int32_t points[kCatchUp + W];
  Index count = 0;
  for (Index i = 0; i < all.padded; i += W) {
    count += list_above(all, i, front.threshold, points + count);
    if (count <= kCatchUp - W) continue;
    catch_up(all, points, count, front.threshold);
    count = 0;
  }
  catch_up(all, points, count, front.threshold);
}

/// The points that are above the threshold now.
void gather_front(const Points& all, Front& front, Context& context) {
  front.count = 0;
  for (Index i = 0; i < all.padded; i += W)
    front.count += list_above(all, i, front.threshold, front.points + front.count);
  const Index padded = round_up(front.count, kPassStrips * kStrip);
  for (Index i = 0; i < padded; ++i) front.nearest[i] = i < front.count ? all.nearest[front.points[i]] : kPadding;
  front.strips = scratch<float>(context, 4, padded * all.d);
  for (Index first = 0; first < padded; first += kStrip) {
    const float* rows[kStrip];
    for (Index i = 0; i < kStrip; ++i) rows[i] = first + i < front.count ? all.row(front.points[first + i]) : nullptr;
    pack_strip(rows, all.d, front.strips + first * all.d);
  }
}

Farthest find_farthest(const Front& front) {
  FarthestLanes lanes;
  for (Index i = 0; i < round_up(front.count, kStrip); i += W) lanes.update(load(front.nearest + i), i);
  return lanes.farthest();
}

/// Lowers the distances of the front by a new centre and finds its farthest point. Taken points hold a negative
/// distance and so keep it.
Farthest lower_and_find(Front& front, const float* centre, Index d) {
  FarthestLanes lanes;
  for (Index begin = 0; begin < front.count; begin += kPassStrips * kStrip) {
    Vec distances[kPassStrips][2];
    distance_strips(centre, front.strips + begin * d, d, distances);
#pragma GCC unroll 4
    for (int s = 0; s < kPassStrips; ++s)
#pragma GCC unroll 2
      for (int v = 0; v < 2; ++v) {
        const Index first = begin + s * kStrip + v * W;
        const Vec old = load(front.nearest + first);
        const Vec lowered = select(distances[s][v] < old, distances[s][v], old);
        store(front.nearest + first, lowered);
        lanes.update(lowered, first);
      }
  }
  return lanes.farthest();
}

/// The farthest point of all, where the front holds none above its threshold.
Farthest renew_front(Points& all, Front& front, Context& context) {
  for (Index i = 0; i < front.count; ++i) {
    all.nearest[front.points[i]] = front.nearest[i];
    all.known[front.points[i]] = static_cast<std::int32_t>(all.taken);
  }
  for (;;) {
    lower_threshold(all, front);
    gather_front(all, front, context);
    if (front.count > 0) return find_farthest(front);
  }
}

}  // namespace

template <>
void run(const KCenter<HostMatrix>& op, Context& context) {
  if (op.order.rows == 0) return;
  const Index n = op.points.rows, d = op.points.cols, padded = round_up(n, kPassStrips * kStrip);
  const Index centres = round_up(op.order.rows, kStrip) * d;
  Points all = {.rows = op.points.data,
                .stride = op.points.stride,
                .count = n,
                .padded = padded,
                .d = d,
                .nearest = scratch<float>(context, 0, padded),
                .known = scratch<std::int32_t>(context, 1, padded),
                .centres = scratch<float>(context, 2, centres),
                .taken = 0};
  for (Index i = 0; i < padded; ++i) all.nearest[i] = i < n ? kInfinity : kPadding;
  for (Index i = 0; i < padded; ++i) all.known[i] = 0;
  for (Index i = 0; i < centres; ++i) all.centres[i] = 0;
  Front front = {.points = scratch<std::int32_t>(context, 3, padded + W),
                 .nearest = scratch<float>(context, 5, padded)};
  const auto add = [&](Index k, Index point, float distance) {
    op.order.data[k * op.order.stride] = static_cast<std::int32_t>(point);
    op.radius2.data[k * op.radius2.stride] = distance;
    all.take(point);
  };
  add(0, op.start, kInfinity);
  const float* centre = all.row(op.start);
  for (Index k = 1; k < op.order.rows; ++k) {
    Farthest next = lower_and_find(front, centre, d);
    if (!(next.distance >= front.threshold)) next = renew_front(all, front, context);
    const Index point = front.points[next.index];
    front.nearest[next.index] = kTaken;
    add(k, point, next.distance);
    centre = all.row(point);
  }
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
