// SPDX-License-Identifier: Apache-2.0
// Greedy k-center with bounds from products of 8-bit integers: a new centre can only lower the distances of points near
// it, and the bounds tell which points may be near. A pass reads a quarter of the bytes that fp32 distances do.
//
// With y = s q + e of a point and z of the centre (int8_rows.hpp), |y - z| >= |s_y q_y - s_z q_z| - |e_y| - |e_z|. A
// point keeps its fp32 distance `nearest` where
//     |s_y q_y|^2 + |s_z q_z|^2 - 2 s_y s_z <q_y, q_z> >= (sqrt(nearest) + |e_y| + |e_z|)^2,
// since the new distance is not less then. Roundings, u = 2^-24: those of the left side are below (d + 8) u times the
// sum of the two squares, which lowered() lowers by 4 (d + 64) u. The fp32 distance, a chain of d subtractions and
// FMAs, is not less than the exact one by more than 1.01 (d + 3) u of it; raised_root() raises its root by 2 (d + 32) u
// and raised() the errors by 16 u, which covers that and the roundings of the right side. Underflow is below the 2^-60
// that is part of every error.
#pragma once

#include "../distance_tile.hpp"
#include "int8_rows.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

/// For the interface see NoCentrePrefilter. Slots 6 and [8, 16) of the workspace.
class Int8CentrePrefilter {
 public:
  Int8CentrePrefilter(const HostMatrix<const float>& points, Context& context) : all_(points), context_(context) {}

  bool hold(const std::int32_t* front, const float* nearest, Index count) {
    constexpr Index cached = 1 << 15;  // numbers of a front that stays in the cache as fp32; measured
    if (!wants_prefilter(context_, count * all_.cols > cached, all_.cols)) return false;
    front_ = front;
    count_ = count;
    allocate();
    return convert(nearest);
  }

  void lower(const float* centre, float* nearest) {
    const Int8Row own = to_int8(centre, mean_, all_.cols, 0, reinterpret_cast<std::uint8_t*>(row_), starts_);
    Index count = 0;
    for (Index first = 0; first < padded_; first += kStrips * kStrip) count = find_changed(own, first, count);
    for (Index begin = 0; begin < count; begin += kStrip)
      lower_strip(centre, begin, min(count - begin, kStrip), nearest);
  }

  void take(Index i) { norm2_[i] = kInfinity; }

 private:
  /// Strips that are bounded together: enough sums to hide the latency of their instructions.
  static constexpr Index kStrips = 4;

  static float raised(float error) { return error * (1 + 0x1p-20f); }
  static float lowered(float norm2, Index d) { return norm2 * (1 - static_cast<float>(d + 64) * 0x1p-22f); }
  static float raised_root(float nearest, Index d) {
    return __builtin_sqrtf(nearest) * (1 + static_cast<float>(d + 32) * 0x1p-23f);
  }

  const float* row_of(Index i) const { return all_.data + front_[i] * all_.stride; }

  void allocate() {
    const Index d = all_.cols, pitch = int8_pitch(d);
    if (mean_ == nullptr) {
      mean_ = scratch<float>(context_, 6, d);
      mean_of(all_.data, all_.stride, all_.rows, d, mean_);
    }
    padded_ = round_up(count_, kStrips * kStrip);
    packed_ = scratch<std::uint8_t>(context_, 9, padded_ * pitch);
    auto* numbers = scratch<float>(context_, 10, 4 * padded_);
    scale_ = numbers;
    norm2_ = numbers + padded_;
    error_ = numbers + 2 * padded_;
    bound_ = numbers + 3 * padded_;
    row_ = scratch<std::int8_t>(context_, 11, pitch);
    starts_ = scratch<std::int32_t>(context_, 8, int8_starts(d));
    changed_ = scratch<std::int32_t>(context_, 12, padded_ + W);
    strip_ = scratch<float>(context_, 13, kStrip * d);
  }

  /// False where a point cannot be used.
  bool convert(const float* nearest) {
    const Index d = all_.cols;
    auto* rows = scratch<std::uint8_t>(context_, 14, kStrip * int8_pitch(d));
    bool usable = true;
    for (Index first = 0; first < padded_ && usable; first += kStrip) {
      const float* points[kStrip];
      for (Index lane = 0; lane < kStrip; ++lane) points[lane] = row_of(min(first + lane, count_ - 1));
      pack_as_int8(points, mean_, d, rows, packed_ + first * int8_pitch(d), [&](Index lane, const Int8Row& own) {
        const Index i = first + lane;
        scale_[i] = own.scale;
        norm2_[i] = i < count_ ? lowered(own.scale * own.scale * own.squares, d) : kInfinity;
        error_[i] = raised(own.error);
        bound_[i] = i < count_ ? raised_root(nearest[i], d) + error_[i] : 0;
        usable = usable && own.size < kInt8Limit;
      });
    }
    return usable;
  }

  /// Appends to changed_ the points of kStrips strips from `first` on whose distances may be lowered by `own`, the
  /// centre in row_; returns how many there are then.
  [[KVBENCH_INT8, gnu::noinline]] Index find_changed(const Int8Row& own, Index first, Index count) {
    const Index pitch = int8_pitch(all_.cols);
    IntVec acc[kStrips][2];
    int8_strip_products<kStrips>(row_, starts_, packed_ + first * pitch, kStrip * pitch, all_.cols, acc);
    const Vec norm2 = broadcast(lowered(own.scale * own.scale * own.squares, all_.cols));
    const Vec scale = broadcast(-2 * own.scale), error = broadcast(raised(own.error));
#pragma GCC unroll 8
    for (Index v = 0; v < 2 * kStrips; ++v) {
      const Index i = first + v * W;
      const Vec product = __builtin_convertvector(acc[v / 2][v % 2], Vec) * load(scale_ + i);
      const Vec distance = fma(product, scale, load(norm2_ + i) + norm2);
      const Vec limit = load(bound_ + i) + error;
      const std::uint32_t changed = bits(distance < limit * limit);
      if (changed != 0) count += compress(lane_numbers(i), changed, changed_ + count);
    }
    return count;
  }

  /// Lowers the distances of up to kStrip points of changed_.
  void lower_strip(const float* centre, Index begin, Index count, float* nearest) {
    const float* rows[kStrip];
    for (Index lane = 0; lane < kStrip; ++lane) rows[lane] = row_of(changed_[begin + min(lane, count - 1)]);
    pack_strip(rows, all_.cols, strip_);
    alignas(64) float distances[kStrip];
    Vec acc[1][2];
    distance_strips(centre, strip_, all_.cols, acc);
    write_strip(acc[0], kStrip, distances);
    for (Index lane = 0; lane < count; ++lane) {
      const Index i = changed_[begin + lane];
      if (!(distances[lane] < nearest[i])) continue;
      nearest[i] = distances[lane];
      bound_[i] = raised_root(distances[lane], all_.cols) + error_[i];
    }
  }

  HostMatrix<const float> all_;
  Context& context_;
  float* mean_ = nullptr;  // of all points
  const std::int32_t* front_ = nullptr;
  Index count_ = 0, padded_ = 0;
  std::uint8_t* packed_ = nullptr;             // the front, by strips of pack_int8()
  std::int8_t* row_ = nullptr;                 // the centre of a pass
  std::int32_t* starts_ = nullptr;             // its starts
  float *scale_ = nullptr, *norm2_ = nullptr;  // s; |s q|^2, lowered; +inf for padding and for points that were taken
  float *error_ = nullptr, *bound_ = nullptr;  // |e|; sqrt(nearest) + |e|, both raised
  std::int32_t* changed_ = nullptr;            // places in the front
  float* strip_ = nullptr;                     // fp32
};

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
