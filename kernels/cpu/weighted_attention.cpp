// SPDX-License-Identifier: Apache-2.0
#include "own_tokens.hpp"

namespace kvbench::kernels::cpu::KVBENCH_ISA {

namespace {

using Op = WeightedAttention<HostMatrix>;

/// Query rows begin, begin + step, ... that read the same row of the table.
struct Rows {
  Index begin, step, count;
};

Rows readers(const Op& op, Index table) {
  const Index m = op.first.rows;
  if (op.per_head && op.per_query) return {table, 1, 1};
  if (op.per_head) return {table * m, 1, m};
  if (op.per_query) return {table, m, op.group};
  return {0, 1, op.queries.rows};
}

bool computes_logits(const Op& op) { return op.own_keys.data != nullptr || op.scores.data == nullptr; }

void list_entries(const Op& op, Index table, Index begin, Index count, PanelEntries& entries) {
  const std::int32_t* ids = op.ids.data + table * op.ids.stride + begin;
  const Index own = table * op.ids.cols + begin;
  entries.count = count;
  for (Index j = 0; j < kPanel; ++j) {
    const bool used = j < count && ids[j] >= 0;
    entries.keys[j] = !used                         ? nullptr
                      : op.own_keys.data != nullptr ? op.own_keys.data + (own + j) * op.own_keys.stride
                                                    : op.keys.data + ids[j] * op.keys.stride;
    entries.values[j] = !used                           ? nullptr
                        : op.own_values.data != nullptr ? op.own_values.data + (own + j) * op.own_values.stride
                                                        : op.values.data + ids[j] * op.values.stride;
  }
}

/// Looks up the logits of `height` rows in the scores, prefetching those of the next row; unused slots get any number.
void gather_scores(const Op& op, const PanelState& state, Rows rows, Index row, Index height, Index count,
                   const std::int32_t* ids) {
  const Index step = rows.step * op.scores.stride;
  const float* scores = op.scores.data + (rows.begin + row * rows.step) * op.scores.stride;
  const IntVec zero = {};
  for (Index r = 0; r < height; ++r, scores += step)
    for (Index j = 0; j < round_up(count, W); j += W) {
      const IntVec id = load(ids + j);
      const IntVec used = select(id < zero, zero, id);
      if (r + 1 < height)
        for (int i = 0; i < W; ++i) __builtin_prefetch(scores + step + used[i]);
      store(state.logits + r * kPanel + j, gather(scores, used));
    }
}

/// Slots whose token the query may not use become -inf, and so do unused ones: their id, -1, lies before every range.
void mask_row(const Op& op, float* logits, const std::int32_t* ids, Index row) {
  const Index query = row % op.first.rows;
  const IntVec first = broadcast(op.first.data[query]);
  const IntVec last = broadcast(op.last.data[query]);
  const Vec skipped = broadcast(-kInfinity);
  for (Index j = 0; j < kPanel; j += W) {
    const IntVec id = load(ids + j);
    store(logits + j, select((id >= first) & (id < last), load(logits + j), skipped));
  }
}

/// Panel copies of ids and weights, padded with unused slots.
struct Slots {
  alignas(64) std::int32_t ids[kPanel];
  alignas(64) float weight_num[kPanel];
  alignas(64) float weight_den[kPanel];
};

void copy_slots(const Op& op, Index table, Index begin, Index count, Slots& slots) {
  for (Index j = 0; j < kPanel; ++j) {
    slots.ids[j] = j < count ? op.ids.data[table * op.ids.stride + begin + j] : -1;
    slots.weight_num[j] =
        j < count && op.weight_num.data != nullptr ? op.weight_num.data[table * op.weight_num.stride + begin + j] : 0;
    slots.weight_den[j] =
        j < count && op.weight_den.data != nullptr ? op.weight_den.data[table * op.weight_den.stride + begin + j] : 0;
  }
}

void process_panel(const Op& op, const PanelState& state, Rows rows, Index table, Index begin, Index count) {
  Slots slots;
  copy_slots(op, table, begin, count, slots);
  PanelEntries entries;
  list_entries(op, table, begin, count, entries);
  pack_panel(state, entries, computes_logits(op));
  for (Index row = 0; row < state.rows; row += kBlockRows) {
    const Index height = min(kBlockRows, state.rows - row);
    if (computes_logits(op))
      logits_of_block(state, row, height, count);
    else
      gather_scores(op, state, rows, row, height, count, slots.ids);
    for (Index r = 0; r < height; ++r) {
      const Index global = rows.begin + (row + r) * rows.step;
      float* logits = state.logits + r * kPanel;
      mask_row(op, logits, slots.ids, global);
      if (op.logits.data != nullptr)
        __builtin_memcpy(op.logits.data + global * op.logits.stride + begin, logits,
                         static_cast<std::size_t>(count) * sizeof(float));
    }
    add_block(state, entries, row, height, op.weight_num.data != nullptr ? slots.weight_num : nullptr,
              op.weight_den.data != nullptr ? slots.weight_den : nullptr);
  }
}

void read_state(const Op& op, const PanelState& state, Rows rows) {
  for (Index r = 0; r < rows.count; ++r) {
    const Index row = rows.begin + r * rows.step;
    state.max[r] = op.max.data[row * op.max.stride];
    state.den[r] = static_cast<double>(op.den.data[row * op.den.stride]);
    for (Index c = 0; c < state.dv_padded; ++c)
      state.num[r * state.dv_padded + c] = c < state.dv ? op.num.data[row * op.num.stride + c] : 0;
  }
}

void write_state(const Op& op, const PanelState& state, Rows rows) {
  for (Index r = 0; r < rows.count; ++r) {
    const Index row = rows.begin + r * rows.step;
    op.max.data[row * op.max.stride] = state.max[r];
    op.den.data[row * op.den.stride] = static_cast<float>(state.den[r]);
    for (Index c = 0; c < state.dv; ++c) op.num.data[row * op.num.stride + c] = state.num[r * state.dv_padded + c];
  }
}

/// Whether every row has tokens of its own in increasing order, whose logits are known: then all rows pass over one
/// block of tokens after the other.
bool passes_over_tokens(const Op& op) {
  if (!op.per_query || op.num.cols == 0 || computes_logits(op) || op.own_values.data != nullptr ||
      op.num.cols % kStrip != 0)
    return false;
  for (Index table = 0; table < op.ids.rows; ++table)
    if (!increases(op.ids.data + table * op.ids.stride, op.ids.cols)) return false;
  return true;
}

Index table_of(const Op& op, Index row) { return op.per_head ? row : row % op.first.rows; }

/// `den` = denominators of all rows.
OwnRow own_row(const Op& op, Index row, double* den) {
  const Index query = row % op.first.rows, table = table_of(op, row);
  const auto of_table = [&](const auto& slots) {
    return slots.data == nullptr ? nullptr : slots.data + table * slots.stride;
  };
  const std::int32_t* ids = of_table(op.ids);
  return {.ids = ids,
          .next = 0,
          .end = used_slots(ids, op.ids.cols),
          .stop = 0,
          .weight_num = of_table(op.weight_num),
          .weight_den = of_table(op.weight_den),
          .scores = op.scores.data + row * op.scores.stride,
          .logits = op.logits.data == nullptr ? nullptr : op.logits.data + row * op.logits.stride,
          .first = op.first.data[query],
          .last = op.last.data[query],
          .weights = nullptr,
          .max = op.max.data + row * op.max.stride,
          .den = den + row,
          .num = op.num.data + row * op.num.stride};
}

void pass_over_tokens(const Op& op, Context& context) {
  const Index all = op.queries.rows, dv = op.num.cols, row_bytes = dv * static_cast<Index>(sizeof(float));
  const Index together = min(clamp(kStateBytes / row_bytes, 1, kRowsTogether), all);
  auto* den = scratch<double>(context, 0, all);
  auto* weights = scratch<float>(context, 1, together * span_weights(op.values.rows));
  auto* rows = scratch<OwnRow>(context, 2, together);
  for (Index r = 0; r < all; ++r) den[r] = static_cast<double>(op.den.data[r * op.den.stride]);
  for (Index begin = 0; begin < all; begin += together) {
    const Index count = min(together, all - begin);
    for (Index r = 0; r < count; ++r) {
      rows[r] = own_row(op, begin + r, den);
      for (Index j = rows[r].end; j < op.ids.cols && rows[r].logits != nullptr; ++j) rows[r].logits[j] = -kInfinity;
    }
    pass_over_tokens(rows, count, op.values.data, op.values.stride, dv, op.values.rows, weights);
  }
  for (Index r = 0; r < all; ++r) op.den.data[r * op.den.stride] = static_cast<float>(den[r]);
}

void pass_over_panels(const Op& op, Context& context) {
  for (Index table = 0; table < op.ids.rows; ++table) {
    const Rows rows = readers(op, table);
    const PanelState state = make_state(context, rows.count, op.queries.cols, op.num.cols);
    if (computes_logits(op))
      pack_tiles(op.queries.data + rows.begin * op.queries.stride, op.queries.stride, rows.step, rows.count, state.d,
                 op.scale, state.queries);
    read_state(op, state, rows);
    const Index width =
        op.logits.data != nullptr ? op.ids.cols : used_slots(op.ids.data + table * op.ids.stride, op.ids.cols);
    for (Index begin = 0; begin < width; begin += kPanel)
      process_panel(op, state, rows, table, begin, min(kPanel, width - begin));
    write_state(op, state, rows);
  }
}

/// Whether computing the logits of tokens that all queries of a head share is faster than looking them up, each in its
/// own cache line.
bool computes_faster(const Op& op) {
  constexpr Index kLine = 64 / Index{sizeof(float)};
  constexpr Index kLineCost = 240;  // products that take as long as loading a line, 5 ns
  constexpr Index kRowsToPackFor = 16;
  if (op.per_query || op.keys.data == nullptr || op.queries.rows / op.ids.rows < kRowsToPackFor) return false;
  Index lines = 0;
  Index used = 0;
  for (Index table = 0; table < op.ids.rows; ++table) {
    const std::int32_t* ids = op.ids.data + table * op.ids.stride;
    std::int32_t line = -1;
    for (Index j = 0; j < op.ids.cols; ++j) {
      if (ids[j] < 0) continue;
      lines += ids[j] / kLine != line;
      line = static_cast<std::int32_t>(ids[j] / kLine);
      ++used;
    }
  }
  return lines * kLineCost > used * op.queries.cols;
}

}  // namespace

template <>
void run(const Op& op, Context& context) {
  if (passes_over_tokens(op)) return pass_over_tokens(op, context);
  Op panels = op;
  if (!computes_logits(op) && computes_faster(op)) panels.scores = {};
  pass_over_panels(panels, context);
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
