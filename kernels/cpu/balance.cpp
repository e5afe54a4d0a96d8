// SPDX-License-Identifier: Apache-2.0
// The walk processes kGroup rows at a time. First their kernel sums with all rows before the group are computed in
// tiles, and only the sums are kept; then the rows of the group are processed strip by strip, and the sign of a row
// enters the sums of the rows after it as soon as it is drawn. Every sum adds its terms in the order of the rows: in
// single precision inside a group, in double precision across groups.
//
// In single precision exp() must stay between e^-87 and e^80, so a shift chosen for the block replaces the caller's.
// Where that is not enough and the terms flushed to zero might decide a sign, the sum of this row is computed again in
// fp64.
//
// Where the prefilter proves that the sums cannot change the signs of a strip, they are not computed.
#include "prefilter/balance.hpp"
#include "block_walk.hpp"
#include "product_tile.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

/// terms[r] = K(row first + r, each row of the strip). First = 1: of the strip's second vector alone.
template <int R, int First = 0>
[[gnu::always_inline]] inline void kernel_tile(const Walk& op, const BlockWalk& walk, Index first, Index strip,
                                               Vec (&terms)[R][2]) {
  alignas(64) float factors[R][kStrip];
  if (walk.values.data != nullptr) {
    const Rows& v = walk.values;
    product_tile<R, First>(v.data + first * v.stride, v.stride, walk.value_strips + strip * v.d, v.d, terms);
    for (int r = 0; r < R; ++r)
      for (int h = First; h < 2; ++h) store(factors[r] + h * W, terms[r][h] + broadcast(op.value_offset));
  }
  const Rows& k = walk.keys;
  product_tile<R, First>(k.data + first * k.stride, k.stride, walk.strips + strip * k.d, k.d, terms);
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
    for (int h = First; h < 2; ++h) {
      terms[r][h] = exp(fma(terms[r][h], broadcast(op.scale), broadcast(-walk.shift)));
      if (walk.values.data != nullptr) terms[r][h] *= load(factors[r] + h * W);
    }
}

/// sums of the strip += the terms of rows [begin, end), which have their signs.
void add_rows(const Walk& op, const BlockWalk& walk, Index begin, Index end, Index strip) {
  for (Index first = begin; first < end; first += kTileRows)
    with_rows(min(kTileRows, end - first), [&]<int R>() {
      Vec terms[R][2];
      kernel_tile<R>(op, walk, first, strip, terms);
      for (int h = 0; h < 2; ++h) {
        Vec sums = load(walk.sums + strip + h * W);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) sums = fma(broadcast(walk.signs[first + r]), terms[r][h], sums);
        store(walk.sums + strip + h * W, sums);
      }
    });
}

double exact_product(const Rows& rows, Index i, Index j) {
  double sum = 0;
  for (Index c = 0; c < rows.d; ++c)
    sum += static_cast<double>(rows.data[i * rows.stride + c]) * static_cast<double>(rows.data[j * rows.stride + c]);
  return sum;
}

/// The kernel sum of row i with rows [0, count), in fp64 throughout and with the caller's shift.
double exact_sum(const Walk& op, const BlockWalk& walk, Index i, Index count) {
  double sum = 0;
  for (Index j = 0; j < count; ++j) {
    const double exponent = static_cast<double>(op.scale) * exact_product(walk.keys, i, j) - walk.given_shift;
    const double factor =
        walk.values.data == nullptr ? 1 : exact_product(walk.values, i, j) + static_cast<double>(op.value_offset);
    sum += static_cast<double>(walk.signs[j]) * __builtin_exp(exponent) * factor;
  }
  return sum;
}

/// step * s of row i, or of the pair that begins with row i, at place `at` of the group; s alone for greedy walks.
double drift(const Walk& op, const BlockWalk& walk, Index i, Index width, Index at) {
  const auto sum_of = [&](Index r) { return walk.total[at + r] + static_cast<double>(walk.sums[at + r]); };
  const double sum = width == 2 ? sum_of(0) - sum_of(1) : sum_of(0);
  const double flushed = walk.flushed * static_cast<double>(2 * i);
  const bool harmless = absolute(sum) >= 0x1p20 * flushed || (!op.greedy && walk.step * flushed < 1e-7);
  if (harmless) return sum == 0 ? 0 : walk.step * sum;
  const double exact = exact_sum(op, walk, i, i) - (width == 2 ? exact_sum(op, walk, i + 1, i) : 0);
  return walk.given_step * exact;
}

/// The sign of row i of the block, whose sum times step is `pull`.
float draw(const Walk& op, const BlockWalk& walk, Index i, double pull, std::int32_t& fails) {
  if (!op.greedy && absolute(pull) > 0.5) ++fails;
  if (op.first_positive && i == 0) return 1;
  if (op.greedy) return pull > 0 ? -1.0f : 1.0f;
  return op.uniforms.data[(walk.begin + i) * op.uniforms.stride] < 0.5 - pull ? 1.0f : -1.0f;
}

/// walk.terms of rows `row`, ... of the strip with those of its vectors that have rows after them.
template <int First>
void keep_terms(const Walk& op, const BlockWalk& walk, Index group, Index strip, Index row, Index count) {
  with_rows(min(kTileRows, count - row), [&]<int R>() {
    Vec terms[R][2];
    kernel_tile<R, First>(op, walk, group + strip + row, strip, terms);
    for (int r = 0; r < R; ++r)
      for (int h = First; h < 2; ++h) store(walk.terms + (row + r) * kStrip + h * W, terms[r][h]);
  });
}

/// Signs the `count` rows of a strip, whose sums with all rows before it are complete.
void walk_strip(const Walk& op, const BlockWalk& walk, Index group, Index strip, Index count, std::int32_t& fails) {
  const Index first = group + strip;
  for (Index row = 0; row < count; row += kTileRows)
    if (row < W) {
      keep_terms<0>(op, walk, group, strip, row, count);
    } else {
      keep_terms<1>(op, walk, group, strip, row, count);
    }
  const Index width = op.pairs ? 2 : 1;
  for (Index row = 0; row < count; row += width) {
    const Index rows = min(width, count - row);
    const float sign = draw(op, walk, first + row, drift(op, walk, first + row, rows, strip + row), fails);
    for (Index r = row; r < row + rows; ++r) {
      const float own = r == row ? sign : -sign;
      walk.signs[first + r] = own;
      for (int h = r < W ? 0 : 1; h < 2; ++h) {
        float* sums = walk.sums + strip + h * W;
        store(sums, fma(broadcast(own), load(walk.terms + r * kStrip + h * W), load(sums)));
      }
    }
  }
}

void draw_strip(const Walk& op, const BlockWalk& walk, Index first, Index count, std::int32_t& fails) {
  for (Index row = 0; row < count; row += op.pairs ? 2 : 1) {
    walk.signs[first + row] = draw(op, walk, first + row, 0, fails);
    if (op.pairs && row + 1 < count) walk.signs[first + row + 1] = -walk.signs[first + row];
  }
}

void pack_needed(const Rows& rows, Index group, Index count, const bool* needs_sums, float* strips) {
  for (Index strip = 0; strip < count; strip += kStrip)
    if (needs_sums[strip / kStrip])
      pack_strips(rows.data + (group + strip) * rows.stride, rows.stride, min(kStrip, count - strip), rows.d,
                  strips + strip * rows.d);
}

/// needs_sums[s]: the signs of strip s of the group depend on its sums.
void walk_group(const Walk& op, const BlockWalk& walk, Index group, const bool* needs_sums, std::int32_t& fails) {
  const Index count = min(kGroup, walk.rows - group);
  pack_needed(walk.keys, group, count, needs_sums, walk.strips);
  if (walk.values.data != nullptr) pack_needed(walk.values, group, count, needs_sums, walk.value_strips);
  for (Index i = 0; i < kGroup; ++i) walk.total[i] = 0;
  for (Index i = 0; i < kGroup; ++i) walk.sums[i] = 0;
  for (Index before = 0; before < group; before += kGroup) {
    for (Index strip = 0; strip < count; strip += kStrip)
      if (needs_sums[strip / kStrip]) add_rows(op, walk, before, before + kGroup, strip);
    for (Index i = 0; i < kGroup; ++i) {
      walk.total[i] += static_cast<double>(walk.sums[i]);
      walk.sums[i] = 0;
    }
  }
  for (Index strip = 0; strip < count; strip += kStrip) {
    const Index rows = min(kStrip, count - strip);
    if (!needs_sums[strip / kStrip]) {
      draw_strip(op, walk, group + strip, rows, fails);
      continue;
    }
    add_rows(op, walk, group, group + strip, strip);
    walk_strip(op, walk, group, strip, rows, fails);
  }
}

}  // namespace

template <>
void run(const Walk& op, Context& context) {
  static_assert(kGroup % kStrip == 0 && kStrip % 2 == 0);
  WalkPrefilter prefilter(op, context);
  for (Index b = 0; b < op.shift.rows; ++b) {
    const BlockWalk walk = start_block(op, b, context);
    std::int32_t fails = 0;
    prefilter.start(walk);
    for (Index group = 0; group < walk.rows; group += kGroup) {
      bool needs_sums[kGroup / kStrip];
      for (bool& needed : needs_sums) needed = true;
      prefilter.find_settled(group, min(kGroup, walk.rows - group), needs_sums);
      walk_group(op, walk, group, needs_sums, fails);
    }
    for (Index i = 0; i < walk.rows; ++i)
      op.signs.data[(walk.begin + i) * op.signs.stride] = static_cast<std::int32_t>(walk.signs[i]);
    op.fails.data[b * op.fails.stride] = fails;
  }
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
