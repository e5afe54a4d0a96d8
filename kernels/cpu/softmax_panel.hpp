// SPDX-License-Identifier: Apache-2.0
// The common core of exact and weighted attention: query rows that share entries pass over the entries in panels of
// kPanel, keeping a running maximum, denominator and numerator (online softmax).
// The order of each sum depends only on the entries, never on neighbouring rows: logits are one chain over d,
// numerators one chain over a panel, panels in order. Results are therefore the same however blocks are split.
#pragma once

#include "pack.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {
namespace {

constexpr Index kPanel = 256;
/// Rows handled together between the two products: their logits stay in the first-level cache.
constexpr Index kBlockRows = 4 * kTileRows;

/// Scratch of one call: `rows` query rows.
struct PanelState {
  Index rows, d, dv, dv_padded;
  float* queries;  // tiles of scaled queries
  float* num;      // [rows, dv_padded]
  float* max;      // [rows]
  double* den;     // [rows]
  float* keys;     // strips of one panel
  float* values;   // [dv_padded / kStrip][kPanel][kStrip] of one panel
  float* logits;   // [kBlockRows, kPanel]
};

inline PanelState make_state(Context& context, Index rows, Index d, Index dv) {
  const Index dv_padded = round_up(dv, kStrip);
  return {rows,
          d,
          dv,
          dv_padded,
          scratch<float>(context, 0, round_up(rows, kTileRows) * d),
          scratch<float>(context, 1, rows * dv_padded),
          scratch<float>(context, 2, rows),
          scratch<double>(context, 3, rows),
          scratch<float>(context, 4, kPanel * d),
          scratch<float>(context, 5, kPanel * dv_padded),
          scratch<float>(context, 6, kBlockRows * kPanel)};
}

/// logits[r][0..kStrip) = <query r, key>.
template <int Rows>
inline void logit_tile(const float* queries, const float* keys, Index d, float* logits) {
  Vec acc[Rows][2] = {};
  for (Index c = 0; c < d; ++c) {
    const Vec k0 = load(keys + c * kStrip);
    const Vec k1 = load(keys + c * kStrip + W);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Vec q = broadcast(queries[c * kTileRows + r]);
      acc[r][0] = fma(q, k0, acc[r][0]);
      acc[r][1] = fma(q, k1, acc[r][1]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    store(logits + r * kPanel, acc[r][0]);
    store(logits + r * kPanel + W, acc[r][1]);
  }
}

/// num[r][0..kStrip) = num * correction[r] + sum over the panel of weight[r][j] * value[j].
template <int Rows>
inline void value_tile(const float* weights, const float* values, Index count, const float* correction, float* num,
                       Index stride) {
  Vec acc[Rows][2] = {};
  for (Index j = 0; j < count; ++j) {
    const Vec v0 = load(values + j * kStrip);
    const Vec v1 = load(values + j * kStrip + W);
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      const Vec p = broadcast(weights[r * kPanel + j]);
      acc[r][0] = fma(p, v0, acc[r][0]);
      acc[r][1] = fma(p, v1, acc[r][1]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < Rows; ++r) {
    float* out = num + r * stride;
    const Vec factor = broadcast(correction[r]);
    store(out, fma(load(out), factor, acc[r][0]));
    store(out + W, fma(load(out + W), factor, acc[r][1]));
  }
}

/// The entries of one panel: pointers to their keys and values, null from `count` on and for unused slots (these count
/// as zeros).
struct PanelEntries {
  Index count;
  const float* keys[kPanel];
  const float* values[kPanel];
};

/// For one query row, packing the values costs more than it saves: they are read in place.
inline bool packs_values(const PanelState& state) { return state.rows > 1 || state.dv % kStrip != 0; }

inline void pack_values(const float* const* rows, Index count, Index dv, float* out) {
  for (Index first = 0; first < dv; first += kStrip) {
    float* strip = out + first * kPanel;
    const Index width = min(kStrip, dv - first);
    for (Index j = 0; j < count; ++j) {
      float* to = strip + j * kStrip;
      if (rows[j] != nullptr && width == kStrip) {
        store(to, load(rows[j] + first));
        store(to + W, load(rows[j] + first + W));
      } else {
        for (Index c = 0; c < kStrip; ++c) to[c] = rows[j] != nullptr && c < width ? rows[j][first + c] : 0;
      }
    }
  }
}

inline void pack_panel(const PanelState& state, const PanelEntries& entries, bool with_keys) {
  for (Index first = 0; with_keys && first < entries.count; first += kStrip)
    pack_strip(entries.keys + first, state.d, state.keys + first * state.d);
  if (packs_values(state)) pack_values(entries.values, entries.count, state.dv, state.values);
}

/// The same sums as value_tile for one row and Strips strips from column `column` on, straight from the entries.
template <int Strips>
inline void value_row(const float* weights, const PanelEntries& entries, Index column, float correction, float* num) {
  Vec acc[2 * Strips] = {};
  for (Index j = 0; j < entries.count; ++j) {
    constexpr Index kAhead = 8;
    const float* later = entries.values[min(j + kAhead, kPanel - 1)];
    const float* value = entries.values[j];
    if (value == nullptr) continue;
    if (later == nullptr) later = value;  // prefetching address 0 costs a walk through the page table each time
#pragma GCC unroll 8
    for (int v = 0; v<2 * Strips; v += 64 / (4 * W)> 1 ? 64 / (4 * W) : 1) __builtin_prefetch(later + column + v * W);
    const Vec p = broadcast(weights[j]);
#pragma GCC unroll 8
    for (int v = 0; v < 2 * Strips; ++v) acc[v] = fma(p, load(value + column + v * W), acc[v]);
  }
#pragma GCC unroll 8
  for (int v = 0; v < 2 * Strips; ++v)
    store(num + column + v * W, fma(load(num + column + v * W), broadcast(correction), acc[v]));
}

inline void add_values_of_row(const PanelState& state, const PanelEntries& entries, const float* weights,
                              float correction, float* num) {
  Index column = 0;
  for (; column + 4 * kStrip <= state.dv; column += 4 * kStrip) value_row<4>(weights, entries, column, correction, num);
  for (; column < state.dv; column += kStrip) value_row<1>(weights, entries, column, correction, num);
}

/// Logits of rows [row, row + rows) against the packed keys of a panel.
inline void logits_of_block(const PanelState& state, Index row, Index rows, Index count) {
  for (Index strip = 0; strip < count; strip += kStrip)
    for (Index r = 0; r < rows; r += kTileRows)
      with_rows(min(kTileRows, rows - r), [&]<int Rows>() {
        logit_tile<Rows>(state.queries + (row + r) * state.d, state.keys + strip * state.d, state.d,
                         state.logits + r * kPanel + strip);
      });
}

/// Turns the logits of one row into weights exp(logit - new maximum) and updates its maximum and denominator; returns
/// the factor exp(old - new maximum) by which the numerator shrinks. Weights of the entries may be absent (1).
inline float soften(float* logits, Index count, const float* weight_num, const float* weight_den, float& max_so_far,
                    double& den) {
  Vec largest0 = broadcast(max_so_far);
  Vec largest1 = largest0;
  for (Index j = 0; j < count; j += kStrip) {
    largest0 = max(largest0, load(logits + j));
    largest1 = max(largest1, load(logits + j + W));
  }
  const float new_max = max(max(largest0, largest1));
  const float correction = new_max == max_so_far ? 1.0f : exp(broadcast(max_so_far - new_max))[0];
  const Vec base = broadcast(new_max == -kInfinity ? 0.0f : new_max);
  Vec sum0 = {};
  Vec sum1 = {};
  for (Index j = 0; j < count; j += kStrip) {
    Vec p0 = exp(load(logits + j) - base);
    Vec p1 = exp(load(logits + j + W) - base);
    sum0 += weight_den == nullptr ? p0 : p0 * load(weight_den + j);
    sum1 += weight_den == nullptr ? p1 : p1 * load(weight_den + j + W);
    store(logits + j, weight_num == nullptr ? p0 : p0 * load(weight_num + j));
    store(logits + j + W, weight_num == nullptr ? p1 : p1 * load(weight_num + j + W));
  }
  max_so_far = new_max;
  den = den * static_cast<double>(correction) + static_cast<double>(sum(sum0 + sum1));
  return correction;
}

/// Adds the panel, whose logits of rows [row, row + rows) are complete and masked, to the state of these rows.
inline void add_block(const PanelState& state, const PanelEntries& entries, Index row, Index rows,
                      const float* weight_num, const float* weight_den) {
  float correction[kBlockRows];
  for (Index r = 0; r < rows; ++r)
    correction[r] = soften(state.logits + r * kPanel, round_up(entries.count, kStrip), weight_num, weight_den,
                           state.max[row + r], state.den[row + r]);
  if (!packs_values(state)) return add_values_of_row(state, entries, state.logits, correction[0], state.num);
  for (Index strip = 0; strip < state.dv_padded; strip += kStrip)
    for (Index r = 0; r < rows; r += kTileRows)
      with_rows(min(kTileRows, rows - r), [&]<int Rows>() {
        value_tile<Rows>(state.logits + r * kPanel, state.values + strip * kPanel, entries.count, correction + r,
                         state.num + (row + r) * state.dv_padded + strip, state.dv_padded);
      });
}

inline void fill(float* data, Index begin, Index end, float value) {
  for (Index j = begin; j < end; ++j) data[j] = value;
}

}  // namespace
}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
