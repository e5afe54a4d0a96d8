// SPDX-License-Identifier: Apache-2.0
// Lanes are points, so that the best so far of kStrip points stays in registers while candidates pass, and no product
// is ever stored.
#include "prefilter/best_match.hpp"
#include "match_strips.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

/// Candidates come in increasing order, so a strict comparison keeps the lowest.
template <int Rows, bool Masked>
inline void update(MatchStrip& strip, const Vec (&scores)[Rows][2], Index candidate) {
#pragma GCC unroll 2
  for (int v = 0; v < 2; ++v) {
    Vec best = strip.best[v];
    IntVec index = strip.index[v];
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const IntVec own = broadcast(static_cast<std::int32_t>(candidate + r));
      IntVec better = scores[r][v] > best;
      if constexpr (Masked) better &= (own >= strip.first[v]) & (own < strip.last[v]) & (own != strip.self[v]);
      best = select(better, scores[r][v], best);
      index = select(better, own, index);
    }
    strip.best[v] = best;
    strip.index[v] = index;
  }
}

template <int Rows>
inline void match_tile(const Match& op, const float* packed, Index candidate, MatchStrip& strip) {
  Vec scores[Rows][2];
  product_tile<Rows>(op.candidates.data + candidate * op.candidates.stride, op.candidates.stride, packed,
                     op.points.cols, scores);
  if (op.bias.data != nullptr)
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < 2; ++v) scores[r][v] += broadcast(op.bias.data[(candidate + r) * op.bias.stride]);
  const bool own = op.skip_self && candidate < strip.point + strip.count && candidate + Rows > strip.point;
  if (own || candidate < strip.all_begin || candidate + Rows > strip.all_end)
    update<Rows, true>(strip, scores, candidate);
  else
    update<Rows, false>(strip, scores, candidate);
}

/// The matches of a group of strips: all candidates in panels that stay in the cache. `packed`: kStrip * d floats a
/// strip.
void match_all(const Match& op, float* packed, MatchStrip* strips, Index count) {
  const Index d = op.points.cols;
  const Index panel = cached_rows(d, kTileRows);
  Index begin = op.candidates.rows, end = 0;
  for (Index s = 0; s < count; ++s) {
    pack_points(op, strips[s], packed + s * kStrip * d);
    begin = min(begin, strips[s].begin);
    end = max(end, strips[s].end);
  }
  for (; begin < end; begin += panel)
    for (Index s = 0; s < count; ++s) {
      const Index stop = min(strips[s].end, begin + panel);
      for (Index c = max(begin, strips[s].begin); c < stop; c += kTileRows)
        with_rows(min(kTileRows, stop - c),
                  [&]<int Rows>() { match_tile<Rows>(op, packed + s * kStrip * d, c, strips[s]); });
    }
}

/// Calls match(strips, count) for the points of the list in groups of strips, and writes the matches of each group.
template <class F>
void for_groups(const Match& op, PointList list, F match) {
  MatchStrip strips[kMatchGroup];
  for (Index point = 0; point < list.count;) {
    Index count = 0;
    for (; count < kMatchGroup && point < list.count; point += strips[count++].count)
      strips[count] = next_strip(op, list, point);
    match(strips, count);
    for (Index s = 0; s < count; ++s) write_matches(op, strips[s]);
  }
}

void match_points(const Match& op, PointList list, MatchPrefilter& prefilter, Context& context) {
  auto* packed = scratch<float>(context, 0, kMatchGroup * kStrip * op.points.cols);
  for_groups(op, list, [&](MatchStrip* strips, Index count) {
    if (!prefilter.match(strips, count)) match_all(op, packed, strips, count);
  });
}

/// The points whose candidate moved, which are matched again, the points whose candidate stayed, and the candidates
/// that moved.
struct Parted {
  PointList again, stayed, moved;
};

Parted part(const Match& op, Context& context) {
  const Index n = op.points.rows, c = op.candidates.rows;
  auto* numbers = scratch<std::int32_t>(context, 1, n + c);
  Parted parts = {.again = {numbers, 0}, .stayed = {numbers + n, 0}, .moved = {numbers + n, 0}};
  for (Index i = 0; i < c; ++i)
    if (op.moved.data[i * op.moved.stride] != 0) numbers[n + parts.moved.count++] = static_cast<std::int32_t>(i);
  for (Index i = 0; i < n; ++i) {  // `again` grows from the front of the array, `stayed` from the back
    const Index own = op.best.data[i * op.best.stride];
    const bool again = own < 0 || op.moved.data[own * op.moved.stride] != 0;
    (again ? numbers[parts.again.count++] : numbers[n - ++parts.stayed.count]) = static_cast<std::int32_t>(i);
  }
  parts.stayed.numbers = numbers + n - parts.stayed.count;
  return parts;
}

/// The operation with the candidates `list` alone.
Match among(const Match& op, PointList list, Context& context) {
  const Index d = op.candidates.cols;
  auto* rows = scratch<float>(context, 2, list.count * (d + 1));
  float* bias = rows + list.count * d;
  for (Index i = 0; i < list.count; ++i) {
    __builtin_memcpy(rows + i * d, op.candidates.data + list[i] * op.candidates.stride,
                     static_cast<std::size_t>(d) * sizeof(float));
    if (op.bias.data != nullptr) bias[i] = op.bias.data[list[i] * op.bias.stride];
  }
  Match some = op;
  some.candidates = {rows, list.count, d, d};
  if (op.bias.data != nullptr) some.bias = {bias, list.count, 1, 1};
  return some;
}

/// After match_all() of the candidates that moved: compares the best of them with each point's own candidate. The
/// better one is numbered as those of the operation.
void compare_with_own(const Match& op, PointList moved, float* pairs, MatchStrip& strip) {
  const float *points[kStrip], *candidates[kStrip];
  const auto own = [&](Index lane) {
    return op.best.data[strip.number(lane < strip.count ? lane : 0) * op.best.stride];
  };
  for (Index lane = 0; lane < kStrip; ++lane) {
    points[lane] = op.points.data + strip.number(lane < strip.count ? lane : 0) * op.points.stride;
    candidates[lane] = op.candidates.data + own(lane) * op.candidates.stride;
  }
  alignas(64) float scores[kStrip];
  pair_products(points, candidates, op.points.cols, pairs, scores);
  for (Index lane = 0; lane < strip.count; ++lane) {
    const Index v = lane / W, i = lane % W;
    const float score = scores[lane] + (op.bias.data == nullptr ? 0 : op.bias.data[own(lane) * op.bias.stride]);
    const std::int32_t other = strip.index[v][i] < 0 ? -1 : moved.numbers[strip.index[v][i]];
    const bool beaten =
        other >= 0 && (!(score >= strip.best[v][i]) || (score == strip.best[v][i] && other < own(lane)));
    strip.index[v][i] = beaten ? other : own(lane);
  }
}

/// Matches the points whose candidate stayed: another candidate can only be better now if it moved.
void match_stayed(const Match& op, const Parted& parts, MatchPrefilter& prefilter, Context& context) {
  const Index d = op.points.cols;
  const Match some = among(op, parts.moved, context);
  auto* packed = scratch<float>(context, 0, kMatchGroup * kStrip * d);
  auto* pairs = scratch<float>(context, 3, 2 * kStrip * d);
  prefilter.set_moved(parts.moved);
  for_groups(some, parts.stayed, [&](MatchStrip* strips, Index count) {
    if (prefilter.challenge(strips, count)) return;
    match_all(some, packed, strips, count);
    for (Index s = 0; s < count; ++s) compare_with_own(op, parts.moved, pairs, strips[s]);
  });
}

}  // namespace

template <>
void run(const Match& op, Context& context) {
  MatchPrefilter prefilter(op, context);
  if (op.moved.data == nullptr) return match_points(op, {nullptr, op.points.rows}, prefilter, context);
  const Parted parts = part(op, context);
  if (parts.again.count > 0) match_points(op, parts.again, prefilter, context);
  if (parts.stayed.count > 0 && parts.moved.count > 0) match_stayed(op, parts, prefilter, context);
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
