// SPDX-License-Identifier: Apache-2.0
// Lanes are points, so that the best so far of kStrip points stays in registers while candidates pass, and no product is ever
// stored.
#include "byte_match.hpp"
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
  product_tile<Rows>(op.candidates.data + candidate * op.candidates.stride, op.candidates.stride, packed, op.points.cols,
                     scores);
  if (op.bias.data != nullptr)
    for (int r = 0; r < Rows; ++r)
      for (int v = 0; v < 2; ++v) scores[r][v] += broadcast(op.bias.data[(candidate + r) * op.bias.stride]);
  const bool own = op.skip_self && candidate < strip.point + strip.count && candidate + Rows > strip.point;
  if (own || candidate < strip.all_begin || candidate + Rows > strip.all_end)
    update<Rows, true>(strip, scores, candidate);
  else
    update<Rows, false>(strip, scores, candidate);
}

/// The matches of a group of strips: all candidates in panels that stay in the cache. `packed`: kStrip * d floats a strip.
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
        with_rows(min(kTileRows, stop - c), [&]<int Rows>() { match_tile<Rows>(op, packed + s * kStrip * d, c, strips[s]); });
    }
}

}  // namespace

template <>
void run(const Match& op, Context& context) {
  MatchStrip strips[kMatchGroup];
  auto* packed = scratch<float>(context, 0, kMatchGroup * kStrip * op.points.cols);
#if KVBENCH_WIDTH == 16
  static_assert(kMatchGroup <= kByteGroup);
  ByteSearch filter = {.usable = false};
  if (wants_filter(context, filter_pays(op), op.points.cols)) filter = start_search(op, context);
#endif
  for (Index point = 0; point < op.points.rows;) {
    Index count = 0;
    for (; count < kMatchGroup && point < op.points.rows; point += strips[count++].count) strips[count] = next_strip(op, point);
#if KVBENCH_WIDTH == 16
    if (!filter.usable || !match_by_bytes(op, filter, strips, count))
#endif
      match_all(op, packed, strips, count);
    for (Index s = 0; s < count; ++s) write_matches(op, strips[s]);
  }
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
