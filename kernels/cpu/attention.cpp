// SPDX-License-Identifier: Apache-2.0
#include "softmax_panel.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

using Op = ExactAttention<HostMatrix>;

struct Range {
  Index begin, end;
};

/// The tokens that any of the rows [row, row + rows) sees.
Range seen(const Op& op, Index row, Index rows) {
  Range range = {op.keys.rows, 0};
  for (Index r = row; r < row + rows; ++r) {
    const Index query = r % op.first.rows;
    range.begin = min(range.begin, op.first.data[query]);
    range.end = max(range.end, op.last.data[query]);
  }
  return range;
}

void list_entries(const Op& op, Index begin, Index count, PanelEntries& entries) {
  entries.count = count;
  for (Index j = 0; j < kPanel; ++j) {
    entries.keys[j] = j < count ? op.keys.data + (begin + j) * op.keys.stride : nullptr;
    entries.values[j] = j < count ? op.values.data + (begin + j) * op.values.stride : nullptr;
  }
}

/// Masked and padded columns become -inf; the logits are copied out where they are kept.
void mask_block(const Op& op, const PanelState& state, Index row, Index rows, Index begin, Index count) {
  for (Index r = 0; r < rows; ++r) {
    float* logits = state.logits + r * kPanel;
    const Index query = (row + r) % op.first.rows;
    fill(logits, 0, clamp(op.first.data[query] - begin, 0, count), -kInfinity);
    fill(logits, clamp(op.last.data[query] - begin, 0, count), round_up(count, kStrip), -kInfinity);
    if (op.scores.data != nullptr)
      __builtin_memcpy(op.scores.data + (row + r) * op.scores.stride + begin, logits,
                       static_cast<std::size_t>(count) * sizeof(float));
  }
}

void process_panel(const Op& op, const PanelState& state, Index begin, Index count) {
  PanelEntries entries;
  list_entries(op, begin, count, entries);
  pack_panel(state, entries, true);
  for (Index row = 0; row < state.rows; row += kBlockRows) {
    const Index rows = min(kBlockRows, state.rows - row);
    const Range range = seen(op, row, rows);
    if (range.end <= begin || range.begin >= begin + count) {
      for (Index r = row; r < row + rows && op.scores.data != nullptr; ++r)
        fill(op.scores.data + r * op.scores.stride, begin, begin + count, -kInfinity);
      continue;
    }
    logits_of_block(state, row, rows, count);
    mask_block(op, state, row, rows, begin, count);
    add_block(state, entries, row, rows, nullptr, nullptr);
  }
}

void write_results(const Op& op, const PanelState& state) {
  for (Index row = 0; row < state.rows; ++row) {
    const double den = state.den[row];
    const float inverse = den == 0 ? 0 : static_cast<float>(1 / den);
    for (Index c = 0; c < state.dv; ++c)
      op.out.data[row * op.out.stride + c] = state.num[row * state.dv_padded + c] * inverse;
    op.max.data[row * op.max.stride] = state.max[row];
    op.log_sum_exp.data[row * op.log_sum_exp.stride] =
        den == 0 ? -kInfinity : static_cast<float>(static_cast<double>(state.max[row]) + __builtin_log(den));
  }
}

}  // namespace

template <>
void run(const Op& op, Context& context) {
  const PanelState state = make_state(context, op.queries.rows, op.queries.cols, op.values.cols);
  pack_tiles(op.queries.data, op.queries.stride, 1, state.rows, state.d, op.scale, state.queries);
  for (Index i = 0; i < state.rows * state.dv_padded; ++i) state.num[i] = 0;
  for (Index row = 0; row < state.rows; ++row) {
    state.max[row] = -kInfinity;
    state.den[row] = 0;
  }
  // Panels begin at fixed tokens, so that a row's result does not depend on what the other rows of the block see.
  const Range range = op.scores.data != nullptr ? Range{0, op.keys.rows} : seen(op, 0, state.rows);
  for (Index begin = range.begin / kPanel * kPanel; begin < range.end; begin += kPanel)
    process_panel(op, state, begin, min(kPanel, op.keys.rows - begin));
  write_results(op, state);
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
