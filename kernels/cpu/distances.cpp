// SPDX-License-Identifier: Apache-2.0
// All three operations form a squared distance as one chain over d, lanes being neighbouring centres or points, so the same
// pair has the same bits in each of them.
#include "product_tile.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

/// acc[r] = squared distances of row r of a packed tile to the kStrip rows of a packed strip.
template <int Rows>
inline void distance_tile(const float* tile, const float* strip, Index d, Vec (&acc)[Rows][2]) {
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) acc[r][0] = acc[r][1] = Vec{};
  for (Index c = 0; c < d; ++c) {
    const Vec s0 = load(strip + c * kStrip);
    const Vec s1 = load(strip + c * kStrip + W);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Vec x = broadcast(tile[c * kTileRows + r]);
      const Vec d0 = s0 - x;
      const Vec d1 = s1 - x;
      acc[r][0] = fma(d0, d0, acc[r][0]);
      acc[r][1] = fma(d1, d1, acc[r][1]);
    }
  }
}

}  // namespace

template <>
void run(const SquaredDistances<HostMatrix>& op, Context& context) {
  constexpr Index block = 8 * kTileRows;
  const Index d = op.points.cols;
  auto* strips = scratch<float>(context, 0, round_up(op.centres.rows, kStrip) * d);
  auto* tiles = scratch<float>(context, 1, block * d);
  pack_strips(op.centres.data, op.centres.stride, op.centres.rows, d, strips);
  for (Index begin = 0; begin < op.points.rows; begin += block) {
    const Index points = min(block, op.points.rows - begin);
    pack_tiles(op.points.data + begin * op.points.stride, op.points.stride, 1, points, d, 1, tiles);
    for (Index centre = 0; centre < op.centres.rows; centre += kStrip)
      for (Index p = 0; p < points; p += kTileRows)
        with_rows(min(kTileRows, points - p), [&]<int Rows>() {
          Vec acc[Rows][2];
          distance_tile<Rows>(tiles + p * d, strips + centre * d, d, acc);
          for (int r = 0; r < Rows; ++r)
            write_strip(acc[r], op.centres.rows - centre, op.out.data + (begin + p + r) * op.out.stride + centre);
        });
  }
}

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

namespace {

/// The nearest representative so far of each point of a block, one candidate a lane.
struct Nearest {
  Vec distance[2];
  IntVec index[2];
};

inline void start(Nearest& nearest) {
  for (int v = 0; v < 2; ++v) {
    nearest.distance[v] = broadcast(kInfinity);
    nearest.index[v] = broadcast(std::int32_t{0x7fffffff});
  }
}

/// Strips come in increasing order, so a strict comparison keeps the lowest cluster of each lane.
inline void update(Nearest& nearest, const Vec (&distances)[2], Index first, Index count) {
  const IntVec limit = broadcast(static_cast<std::int32_t>(count));
  for (int v = 0; v < 2; ++v) {
    const IntVec index = lane_numbers() + static_cast<std::int32_t>(first + v * W);
    const IntVec unset = nearest.index[v] == broadcast(std::int32_t{0x7fffffff});
    const IntVec better = (index < limit) & ((distances[v] < nearest.distance[v]) | unset);
    nearest.distance[v] = select(better, distances[v], nearest.distance[v]);
    nearest.index[v] = select(better, index, nearest.index[v]);
  }
}

struct Candidate {
  float distance;
  std::int32_t index;
};

inline Candidate best_of(const Nearest& nearest) {
  Candidate best = {kInfinity, 0x7fffffff};
  for (int v = 0; v < 2; ++v)
    for (int i = 0; i < W; ++i) {
      const Candidate lane = {nearest.distance[v][i], nearest.index[v][i]};
      if (lane.distance < best.distance || (lane.distance == best.distance && lane.index < best.index)) best = lane;
    }
  return best;
}

constexpr Index kLeaderBlock = 32 * kTileRows;

/// Nearest among the representatives [0, count) that exist before the block.
void nearest_existing(const float* tiles, Index points, const float* strips, Index count, Index d, Nearest* nearest) {
  for (Index p = 0; p < points; ++p) start(nearest[p]);
  for (Index first = 0; first < count; first += kStrip)
    for (Index p = 0; p < points; p += kTileRows)
      with_rows(min(kTileRows, points - p), [&]<int Rows>() {
        Vec acc[Rows][2];
        distance_tile<Rows>(tiles + p * d, strips + first * d, d, acc);
        for (int r = 0; r < Rows; ++r) update(nearest[p + r], acc[r], first, count);
      });
}

/// Also compares one point with the representatives [begin, end) opened inside the block.
void nearest_opened(const float* tiles, Index point, const float* strips, Index begin, Index end, Index d, Nearest& nearest) {
  const float* row = tiles + point / kTileRows * kTileRows * d + point % kTileRows;
  for (Index first = begin / kStrip * kStrip; first < end; first += kStrip) {
    Vec acc[1][2];
    distance_tile<1>(row, strips + first * d, d, acc);
    update(nearest, acc[0], first, end);
  }
}

void open_cluster(const LeaderClusters<HostMatrix>& op, Index point, Index cluster, float* strips) {
  const Index d = op.points.cols;
  const float* row = op.points.data + point * op.points.stride;
  for (Index c = 0; c < d; ++c) {
    op.representatives.data[cluster * op.representatives.stride + c] = row[c];
    strips[cluster / kStrip * kStrip * d + c * kStrip + cluster % kStrip] = row[c];
  }
}

}  // namespace

template <>
void run(const LeaderClusters<HostMatrix>& op, Context& context) {
  const double radius2 = static_cast<double>(op.radius) * static_cast<double>(op.radius);
  const Index d = op.points.cols;
  const Index capacity = op.representatives.rows;
  Index count = op.count.data[0];
  auto* strips = scratch<float>(context, 0, round_up(capacity, kStrip) * d);
  auto* tiles = scratch<float>(context, 1, kLeaderBlock * d);
  auto* nearest = scratch<Nearest>(context, 2, kLeaderBlock);
  for (Index i = 0; i < round_up(capacity, kStrip) * d; ++i) strips[i] = 0;
  pack_strips(op.representatives.data, op.representatives.stride, min(count, capacity), d, strips);

  Index i = 0;
  for (Index begin = 0; begin < op.points.rows && count <= capacity; begin += kLeaderBlock) {
    const Index points = min(kLeaderBlock, op.points.rows - begin);
    const Index before = count;
    pack_tiles(op.points.data + begin * op.points.stride, op.points.stride, 1, points, d, 1, tiles);
    nearest_existing(tiles, points, strips, before, d, nearest);
    for (i = begin; i < begin + points && count <= capacity; ++i) {
      if (count > before) nearest_opened(tiles, i - begin, strips, before, count, d, nearest[i - begin]);
      Candidate chosen = best_of(nearest[i - begin]);
      if (count == 0 || static_cast<double>(chosen.distance) > radius2) {
        if (count < capacity) open_cluster(op, i, count, strips);
        chosen.index = count < capacity ? static_cast<std::int32_t>(count) : -1;
        ++count;
      }
      op.labels.data[i * op.labels.stride] = chosen.index;
    }
  }
  for (; i < op.points.rows; ++i) op.labels.data[i * op.labels.stride] = -1;
  op.count.data[0] = static_cast<std::int32_t>(count);
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
