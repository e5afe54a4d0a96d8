// SPDX-License-Identifier: Apache-2.0
#include "prefilter/leader_clusters.hpp"
#include "distance_tile.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

using Leaders = LeaderClusters<HostMatrix>;

/// The nearest representative so far of a point, one candidate per lane.
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
    const IntVec index = lane_numbers(first + v * W);
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

constexpr Index kLeaderBlock = 32 * kTileRows;  // 192 or 256 points

/// Compares the points [begin, begin + points) of a block with the representatives [0, count) that exist before it.
/// `tiles`: scratch memory for the block.
void nearest_existing(const Leaders& op, Index begin, Index points, const float* strips, Index count, float* tiles,
                      Nearest* nearest) {
  const Index d = op.points.cols;
  pack_tiles(op.points.data + begin * op.points.stride, op.points.stride, 1, points, d, 1, tiles);
  for (Index first = 0; first < count; first += kStrip)
    for (Index p = 0; p < points; p += kTileRows)
      with_rows(min(kTileRows, points - p), [&]<int Rows>() {
        Vec acc[Rows][2];
        distance_tile<Rows>(tiles + p * d, strips + first * d, d, acc);
        for (int r = 0; r < Rows; ++r) update(nearest[p + r], acc[r], first, count);
      });
}

/// The same by the prefilter; false where it leaves the search to the caller.
bool find_prefiltered(LeaderPrefilter& prefilter, Index begin, Index points, Index count, Nearest* nearest) {
  static_assert(kLeaderBlock <= LeaderPrefilter::kMostPoints);
  return prefilter.find_nearest(begin, points, count, [&](Index point, std::int32_t candidate, float distance) {
    Nearest& own = nearest[point];
    if (!(distance < own.distance[0][0])) return;  // candidates come in increasing order: the lowest of equals stays
    own.distance[0][0] = distance;
    own.index[0][0] = candidate;
  });
}

/// Also compares one point with the representatives [begin, end) opened inside the block.
void nearest_opened(const float* point, const float* strips, Index begin, Index end, Index d, Nearest& nearest) {
  constexpr int some = 4;
  Index first = begin / kStrip * kStrip;
  for (; first + (some - 1) * kStrip < end; first += some * kStrip) {
    Vec acc[some][2];
    distance_strips(point, strips + first * d, d, acc);
    for (int s = 0; s < some; ++s) update(nearest, acc[s], first + s * kStrip, end);
  }
  for (; first < end; first += kStrip) {
    Vec acc[1][2];
    distance_strips(point, strips + first * d, d, acc);
    update(nearest, acc[0], first, end);
  }
}

void open_cluster(const Leaders& op, Index point, Index cluster, float* strips) {
  const Index d = op.points.cols;
  const float* row = op.points.data + point * op.points.stride;
  for (Index c = 0; c < d; ++c) {
    op.representatives.data[cluster * op.representatives.stride + c] = row[c];
    strips[cluster / kStrip * kStrip * d + c * kStrip + cluster % kStrip] = row[c];
  }
}

/// The largest float that is not above x >= 0: a distance is within it just where it is within x.
inline float not_above(double x) {
  const auto rounded = static_cast<float>(x);
  return static_cast<double>(rounded) > x ? __builtin_nextafterf(rounded, 0) : rounded;
}

/// Leaves in `open`, points in any order, those that no representative [begin, end) covers, and returns how many.
Index drop_covered(const Leaders& op, const float* strips, Index begin, Index end, float limit, std::int32_t* open,
                   Index points) {
  const Index d = op.points.cols;
  for (Index first = begin / W * W; first < end && points > 0; first += W) {
    const float* lanes = strips + first / kStrip * kStrip * d + first % kStrip;
    const IntVec used = lane_numbers(first) < broadcast(static_cast<std::int32_t>(end));
    Index left = 0;
    for (Index p = 0; p < points; p += kTileRows)
      with_rows(min(kTileRows, points - p), [&]<int Rows>() {
        const float* rows[Rows];
        for (int r = 0; r < Rows; ++r) rows[r] = op.points.data + open[p + r] * op.points.stride;
        Vec distances[Rows];
        distance_lanes<Rows>(rows, lanes, d, distances);
        for (int r = 0; r < Rows; ++r) {
          open[left] = open[p + r];
          left += bits(used & (distances[r] <= limit)) == 0;
        }
      });
    points = left;
  }
  return points;
}

/// The number of clusters alone. Most points lie within the radius of one of the first representatives, and need no
/// other.
Index count_clusters(const Leaders& op, double radius2, Index count, float* strips) {
  constexpr Index least = 32, most = 512;
  const Index n = op.points.rows, capacity = op.representatives.rows;
  const float limit = not_above(radius2);
  std::int32_t open[most];
  Index points = 0;
  for (Index begin = 0; begin < n && count <= capacity; begin += points) {
    points = min(clamp(begin, least, most), n - begin);
    for (Index p = 0; p < points; ++p) open[p] = static_cast<std::int32_t>(begin + p);
    const Index before = count, far = drop_covered(op, strips, 0, before, limit, open, points);
    for (Index p = 0; p < far && count <= capacity; ++p) {
      std::int32_t point = open[p];
      if (drop_covered(op, strips, before, count, limit, &point, 1) == 0) continue;
      if (count < capacity) open_cluster(op, point, count, strips);
      ++count;
    }
  }
  return count;
}

/// Clusters, and the label of each point.
Index label_points(const Leaders& op, double radius2, Index count, float* strips, Context& context) {
  const Index d = op.points.cols, capacity = op.representatives.rows;
  auto* tiles = scratch<float>(context, 1, kLeaderBlock * d);
  auto* nearest = scratch<Nearest>(context, 2, kLeaderBlock);
  LeaderPrefilter prefilter(op, context);
  Index i = 0;
  for (Index begin = 0; begin < op.points.rows && count <= capacity; begin += kLeaderBlock) {
    const Index points = min(kLeaderBlock, op.points.rows - begin);
    const Index before = count;
    for (Index p = 0; p < points; ++p) start(nearest[p]);
    if (!find_prefiltered(prefilter, begin, points, before, nearest))
      nearest_existing(op, begin, points, strips, before, tiles, nearest);
    for (i = begin; i < begin + points && count <= capacity; ++i) {
      if (count > before)
        nearest_opened(op.points.data + i * op.points.stride, strips, before, count, d, nearest[i - begin]);
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
  return count;
}

}  // namespace

template <>
void run(const Leaders& op, Context& context) {
  const double radius2 = static_cast<double>(op.radius) * static_cast<double>(op.radius);
  const Index d = op.points.cols, capacity = op.representatives.rows, count = op.count.data[0];
  auto* strips = scratch<float>(context, 0, round_up(capacity, kStrip) * d);
  for (Index i = 0; i < round_up(capacity, kStrip) * d; ++i) strips[i] = 0;
  pack_strips(op.representatives.data, op.representatives.stride, min(count, capacity), d, strips);
  const Index now = op.labels.data == nullptr ? count_clusters(op, radius2, count, strips)
                                              : label_points(op, radius2, count, strips, context);
  op.count.data[0] = static_cast<std::int32_t>(now);
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
