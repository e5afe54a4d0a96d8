// SPDX-License-Identifier: Apache-2.0
// Inner products by tiles, and the best match on top of them: lanes are points, so that the best so far of kStrip points stays
// in registers while candidates pass, and no product is ever stored.
#include "product_tile.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

/// Floats of an operand that is read again and again: 256 KiB, half of the smallest second-level cache in view.
constexpr Index kCached = 1 << 16;

/// Rows of d floats that fit there, a multiple of `multiple` and at least that.
inline Index cached_rows(Index d, Index multiple) { return max(kCached / max(d, 1) / multiple, 1) * multiple; }

}  // namespace

template <>
void run(const InnerProducts<HostMatrix>& op, Context& context) {
  constexpr Index block = 4 * kTileRows;  // rows of a that stay in the first-level cache while the strips pass
  const Index d = op.a.cols;
  const Index panel = min(cached_rows(d, kStrip), round_up(op.b.rows, kStrip));
  auto* strips = scratch<float>(context, 0, panel * d);
  for (Index begin = 0; begin < op.b.rows; begin += panel) {
    const Index count = min(panel, op.b.rows - begin);
    pack_strips(op.b.data + begin * op.b.stride, op.b.stride, count, d, strips);
    for (Index row = 0; row < op.a.rows; row += block)
      for (Index strip = 0; strip < count; strip += kStrip)
        for (Index i = row; i < min(op.a.rows, row + block); i += kTileRows)
          with_rows(min(kTileRows, op.a.rows - i), [&]<int Rows>() {
            Vec acc[Rows][2];
            product_tile<Rows>(op.a.data + i * op.a.stride, op.a.stride, strips + strip * d, d, acc);
            for (int r = 0; r < Rows; ++r)
              write_strip(acc[r], count - strip, op.out.data + (i + r) * op.out.stride + begin + strip);
          });
  }
}

namespace {

using Match = BestMatch<HostMatrix>;

/// Up to kStrip neighbouring points, one a lane, and the best candidate of each so far. Lanes beyond `count` repeat the first.
struct MatchStrip {
  Index point, count;
  Index begin, end;          // candidates that any point sees
  Index all_begin, all_end;  // candidates that every point sees
  IntVec first[2], last[2], self[2];
  Vec best[2];
  IntVec index[2];
};

struct Range {
  Index begin, end;
};

Range range_of(const Match& op, Index point) {
  const Index begin = op.first.data == nullptr ? 0 : op.first.data[point * op.first.stride];
  const Index end = op.last.data == nullptr ? op.candidates.rows : op.last.data[point * op.last.stride];
  return {begin, max(begin, end)};
}

/// Takes points from `point` on as long as they see about the same candidates: the union of their ranges must not exceed the
/// longest by more than a strip.
MatchStrip next_strip(const Match& op, Index point) {
  MatchStrip strip = {};
  const Range own = range_of(op, point);
  strip.point = point;
  strip.begin = strip.all_begin = own.begin;
  strip.end = strip.all_end = own.end;
  alignas(64) std::int32_t first[kStrip], last[kStrip], self[kStrip];
  Index longest = own.end - own.begin;
  for (Index lane = 0; lane < kStrip; ++lane) {
    const bool open = strip.count == lane && point + lane < op.points.rows;
    const Range range = open ? range_of(op, point + lane) : own;
    const Range both = {min(strip.begin, range.begin), max(strip.end, range.end)};
    longest = max(longest, range.end - range.begin);
    if (open && both.end - both.begin <= longest + kStrip) {
      ++strip.count;
      strip.begin = both.begin;
      strip.end = both.end;
      strip.all_begin = max(strip.all_begin, range.begin);
      strip.all_end = min(strip.all_end, range.end);
    }
    const bool taken = strip.count > lane;
    first[lane] = static_cast<std::int32_t>(taken ? range.begin : own.begin);
    last[lane] = static_cast<std::int32_t>(taken ? range.end : own.end);
    self[lane] = op.skip_self ? static_cast<std::int32_t>(point + (taken ? lane : 0)) : -1;
  }
  for (int v = 0; v < 2; ++v) {
    strip.first[v] = load(first + v * W);
    strip.last[v] = load(last + v * W);
    strip.self[v] = load(self + v * W);
    strip.best[v] = broadcast(-kInfinity);
    strip.index[v] = broadcast(std::int32_t{-1});
  }
  return strip;
}

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

void pack_points(const Match& op, const MatchStrip& strip, float* out) {
  const float* rows[kStrip];
  for (Index lane = 0; lane < kStrip; ++lane)
    rows[lane] = lane < strip.count ? op.points.data + (strip.point + lane) * op.points.stride : nullptr;
  pack_strip(rows, op.points.cols, out);
}

void write_matches(const Match& op, const MatchStrip& strip) {
  for (Index lane = 0; lane < strip.count; ++lane) {
    const Index point = strip.point + lane;
    std::int32_t best = strip.index[lane / W][lane % W];
    if (best < 0) {  // no score above -inf: the lowest candidate, where there is one
      const Range range = range_of(op, point);
      const Index lowest = op.skip_self && range.begin == point ? point + 1 : range.begin;
      best = lowest < range.end ? static_cast<std::int32_t>(lowest) : -1;
    }
    op.best.data[point * op.best.stride] = best;
    op.score.data[point * op.score.stride] = strip.best[lane / W][lane % W];
  }
}

}  // namespace

template <>
void run(const Match& op, Context& context) {
  constexpr Index group = 8;  // strips for which a cached panel of candidates is read
  const Index d = op.points.cols;
  const Index panel = cached_rows(d, kTileRows);
  auto* packed = scratch<float>(context, 0, group * kStrip * d);
  MatchStrip strips[group];
  for (Index point = 0; point < op.points.rows;) {
    Index count = 0, begin = op.candidates.rows, end = 0;
    for (; count < group && point < op.points.rows; point += strips[count++].count) {
      strips[count] = next_strip(op, point);
      pack_points(op, strips[count], packed + count * kStrip * d);
      begin = min(begin, strips[count].begin);
      end = max(end, strips[count].end);
    }
    for (; begin < end; begin += panel)
      for (Index s = 0; s < count; ++s) {
        const Index stop = min(strips[s].end, begin + panel);
        for (Index c = max(begin, strips[s].begin); c < stop; c += kTileRows)
          with_rows(min(kTileRows, stop - c), [&]<int Rows>() { match_tile<Rows>(op, packed + s * kStrip * d, c, strips[s]); });
      }
    for (Index s = 0; s < count; ++s) write_matches(op, strips[s]);
  }
}

namespace {

constexpr int H = W / 2;
using Floats = float __attribute__((vector_size(4 * H), aligned(4), may_alias));
using Doubles = double __attribute__((vector_size(8 * H)));
using UnalignedDoubles = double __attribute__((vector_size(8 * H), aligned(8), may_alias));

inline Doubles widen(const float* p) { return __builtin_convertvector(*reinterpret_cast<const Floats*>(p), Doubles); }
inline void narrow(Doubles x, float* p) { *reinterpret_cast<Floats*>(p) = __builtin_convertvector(x, Floats); }

}  // namespace

template <>
void run(const NormalizeRows<HostMatrix>& op, Context&) {
  const Index d = op.rows.cols;
  for (Index i = 0; i < op.rows.rows; ++i) {
    const float* row = op.rows.data + i * op.rows.stride;
    float* out = op.out.data + i * op.out.stride;
    const double norm2 = squared_norm(row, d);
    const double inverse = norm2 > 0 ? 1 / __builtin_sqrt(norm2) : 0;
    Index c = 0;
    for (; c + H <= d; c += H) narrow(widen(row + c) * inverse, out + c);
    for (; c < d; ++c) out[c] = static_cast<float>(static_cast<double>(row[c]) * inverse);
  }
}

namespace {

/// sums += weight * row, in fp64.
inline void add_row(const float* row, double weight, Index d, double* sums) {
  Index c = 0;
  for (; c + H <= d; c += H) *reinterpret_cast<UnalignedDoubles*>(sums + c) += widen(row + c) * weight;
  for (; c < d; ++c) sums[c] += weight * static_cast<double>(row[c]);
}

using Means = MeanRows<HostMatrix>;

inline double weight_of(const Means& op, Index row) {
  return op.weights.data == nullptr ? 1 : static_cast<double>(op.weights.data[row * op.weights.stride]);
}

/// The means of columns [begin, begin + width).
void mean_columns(const Means& op, const double* mass, Index begin, Index width, double* sums) {
  for (Index i = 0; i < op.out.rows * width; ++i) sums[i] = 0;
  for (Index i = 0; i < op.rows.rows; ++i) {
    const Index label = op.labels.data[i * op.labels.stride];
    if (label >= 0) add_row(op.rows.data + i * op.rows.stride + begin, weight_of(op, i), width, sums + label * width);
  }
  for (Index label = 0; label < op.out.rows; ++label) {
    if (mass[label] == 0) continue;
    float* out = op.out.data + label * op.out.stride + begin;
    for (Index c = 0; c < width; ++c) out[c] = static_cast<float>(sums[label * width + c] / mass[label]);
  }
}

}  // namespace

template <>
void run(const Means& op, Context& context) {
  constexpr Index held = 1 << 22;                    // sums at a time, 32 MiB: labels may be half as many as rows
  constexpr Index line = 64 / Index{sizeof(float)};  // narrower columns would read each line of a row again
  const Index d = op.rows.cols, labels = op.out.rows;
  const Index width = min(d, max(held / max(labels, 1) / line, 1) * line);
  auto* sums = scratch<double>(context, 0, labels * width);
  auto* mass = scratch<double>(context, 1, labels);
  for (Index label = 0; label < labels; ++label) mass[label] = 0;
  for (Index i = 0; i < op.rows.rows; ++i) {
    const Index label = op.labels.data[i * op.labels.stride];
    if (label >= 0) mass[label] += weight_of(op, i);
  }
  for (Index label = 0; label < labels; ++label) op.mass.data[label * op.mass.stride] = static_cast<float>(mass[label]);
  for (Index begin = 0; begin < d; begin += width) mean_columns(op, mass, begin, min(width, d - begin), sums);
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
