// SPDX-License-Identifier: Apache-2.0
// One warp per distance. The two greedy loops are one cooperative launch each: every round updates all points against
// one centre and finds the next centre by a grid-wide reduction whose outcome does not depend on the order of its
// operands.
#include <cooperative_groups.h>

#include <climits>

#include "kernels.hpp"
#include "launch.cuh"

namespace kvbench::kernels::cuda {

namespace {

namespace cg = cooperative_groups;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / kWarp;

/// |a - b|^2 over d dimensions, the same bits for the same operands in every kernel. The result is in all lanes, which
/// must all call it.
__device__ float squared_distance(const float* a, const float* b, Index d) {
  float sum = 0;
  for (Index c = lane_index(); c < d; c += kWarp) {
    const float difference = a[c] - b[c];
    sum = fmaf(difference, difference, sum);
  }
  return warp_sum(sum);
}

__global__ void squared_distances(SquaredDistances<DeviceMatrix> op) {
  const Index centres = op.centres.rows;
  for (Index e = first_warp(); e < op.points.rows * centres; e += warp_stride()) {
    const Index i = e / centres;
    const Index c = e % centres;
    const float distance = squared_distance(op.points.row(i), op.centres.row(c), op.points.cols);
    if (lane_index() == 0) op.out(i, c) = distance;
  }
}

/// A point that may become the next centre: the larger value wins, then the lower index.
struct Candidate {
  float value;
  int index;
};

__device__ Candidate better(Candidate a, Candidate b) {
  return a.value > b.value || (a.value == b.value && a.index < b.index) ? a : b;
}

__device__ Candidate warp_best(Candidate mine) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const Candidate other{__shfl_xor_sync(kFullWarp, mine.value, offset),
                          __shfl_xor_sync(kFullWarp, mine.index, offset)};
    mine = better(mine, other);
  }
  return mine;
}

/// The best candidate of the block, in all its threads. All threads of the block must call it.
__device__ Candidate block_best(Candidate mine) {
  __shared__ Candidate warp_bests[kWarps];
  mine = warp_best(mine);
  __syncthreads();  // the previous call's results have been read
  if (lane_index() == 0) warp_bests[threadIdx.x / kWarp] = mine;
  __syncthreads();
  Candidate best = warp_bests[0];
  for (int w = 1; w < kWarps; ++w) best = better(best, warp_bests[w]);
  return best;
}

/// The best candidate of the grid, in all threads. `board` holds two lines of gridDim.x candidates, used in turn: a
/// line is written again only after the synchronisation of the round between, when every block has read it.
__device__ Candidate grid_best(Candidate mine, Candidate* board, Index round) {
  Candidate* line = board + (round % 2) * gridDim.x;
  mine = block_best(mine);
  if (threadIdx.x == 0) line[blockIdx.x] = mine;
  cg::this_grid().sync();
  Candidate best{-INFINITY, INT_MAX};
  for (unsigned b = threadIdx.x; b < gridDim.x; b += kThreads) best = better(best, line[b]);
  return block_best(best);
}

/// nearest[i]: squared distance from point i to the centres so far, -1 for a centre. Only one warp accesses entry i.
__global__ void __launch_bounds__(kThreads) k_center(KCenter<DeviceMatrix> op, float* nearest, Candidate* board) {
  Candidate centre{INFINITY, static_cast<int>(op.start)};
  for (Index round = 0; round < op.order.rows; ++round) {
    if (first_index() == 0) {
      op.order[round] = centre.index;
      op.radius2[round] = centre.value;
    }
    if (round + 1 == op.order.rows) return;
    Candidate mine{-INFINITY, INT_MAX};
    for (Index i = first_warp(); i < op.points.rows; i += warp_stride()) {
      const float distance = squared_distance(op.points.row(i), op.points.row(centre.index), op.points.cols);
      const float before = round == 0 ? INFINITY : nearest[i];
      const float now = i == centre.index ? -1.0f : fminf(before, distance);
      __syncwarp();  // every lane has read nearest[i]
      if (lane_index() == 0) nearest[i] = now;
      __syncwarp();
      mine = better(mine, {now, static_cast<int>(i)});
    }
    centre = grid_best(mine, board, round);
  }
}

/// Lane 0 only. The point moves to a cluster that is strictly nearer than those offered before, which are the lower
/// ones.
__device__ void offer_cluster(float& nearest, std::int32_t& label, float candidate, std::int32_t cluster) {
  if (label >= 0 && candidate >= nearest) return;
  nearest = candidate;
  label = cluster;
}

/// Round 0 offers every point the clusters that exist; round r offers the cluster opened last to the points behind its
/// opener. The lowest point whose nearest cluster is then still too far opens the next one: all points before it are
/// settled, because every cluster opened so far came from a point before it. Entry i of nearest and labels is touched
/// by one warp only, except right after the grid's synchronisation for points that no warp will touch again.
__global__ void __launch_bounds__(kThreads)
    leader_clusters(LeaderClusters<DeviceMatrix> op, float* nearest, Candidate* board) {
  const Index n = op.points.rows;
  const Index d = op.points.cols;
  const double radius2 = static_cast<double>(op.radius) * op.radius;
  std::int32_t count = op.count[0];
  if (count > op.representatives.rows) {  // an earlier call ran out of clusters
    for (Index i = first_index(); i < n; i += index_stride()) op.labels[i] = -1;
    return;
  }
  Index opener = -1;
  for (Index round = 0;; ++round) {
    Candidate mine{-INFINITY, INT_MAX};
    for (Index i = first_warp(); i < n; i += warp_stride()) {
      if (i <= opener) continue;
      if (round == 0 && lane_index() == 0) op.labels[i] = -1;
      for (std::int32_t c = round == 0 ? 0 : count - 1; c < count; ++c) {
        const float* centre = round == 0 ? op.representatives.row(c) : op.points.row(opener);
        const float distance = squared_distance(op.points.row(i), centre, d);
        if (lane_index() == 0) offer_cluster(nearest[i], op.labels[i], distance, c);
      }
      if (lane_index() == 0 && (op.labels[i] < 0 || nearest[i] > radius2))
        mine = better(mine, {0.0f, static_cast<int>(i)});
    }
    opener = grid_best(mine, board, round).index;
    if (opener == INT_MAX) break;
    if (count >= op.representatives.rows) {
      count = static_cast<std::int32_t>(op.representatives.rows) + 1;
      for (Index i = opener + first_index(); i < n; i += index_stride()) op.labels[i] = -1;
      break;
    }
    if (blockIdx.x == 0) {
      for (Index c = threadIdx.x; c < d; c += kThreads) op.representatives(count, c) = op.points(opener, c);
    }
    if (first_index() == 0) op.labels[opener] = count;
    ++count;
  }
  if (first_index() == 0) op.count[0] = count;
}

/// Scratch of the two loops: two lines of candidates, then two numbers for each point.
struct LoopScratch {
  Candidate* board;
  float* nearest;
  std::int32_t* labels;
};

LoopScratch loop_scratch(Context& context, Index points, int blocks) {
  const std::size_t line = static_cast<std::size_t>(2 * blocks);
  auto* board = context.workspace<Candidate>(line + static_cast<std::size_t>(points));
  static_assert(sizeof(Candidate) == sizeof(float) + sizeof(std::int32_t));
  auto* nearest = reinterpret_cast<float*>(board + line);
  return {board, nearest, reinterpret_cast<std::int32_t*>(nearest + points)};
}

}  // namespace

template <>
void run(const SquaredDistances<DeviceMatrix>& op, Context& context) {
  launch_warps(context, op.points.rows * op.centres.rows, squared_distances, op);
}

template <>
void run(const KCenter<DeviceMatrix>& op, Context& context) {
  if (op.order.rows == 0) return;
  const int blocks = cooperative_blocks(context, op.points.rows, kThreads, k_center);
  const LoopScratch scratch = loop_scratch(context, op.points.rows, blocks);
  launch_cooperative(context, blocks, kThreads, k_center, op, scratch.nearest, scratch.board);
}

template <>
void run(const LeaderClusters<DeviceMatrix>& op, Context& context) {
  if (op.points.rows == 0) return;
  const int blocks = cooperative_blocks(context, op.points.rows, kThreads, leader_clusters);
  const LoopScratch scratch = loop_scratch(context, op.points.rows, blocks);
  LeaderClusters<DeviceMatrix> labelled = op;
  if (op.labels.empty()) labelled.labels = {scratch.labels, op.points.rows, 1, 1};
  launch_cooperative(context, blocks, kThreads, leader_clusters, labelled, scratch.nearest, scratch.board);
}

}  // namespace kvbench::kernels::cuda
