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

void gather_scores(const Op& op, const PanelState& state, Rows rows, Index row, Index count, const std::int32_t* ids) {
  for (Index r = 0; r < count; ++r) {
    const float* scores = op.scores.data + (rows.begin + (row + r) * rows.step) * op.scores.stride;
    float* logits = state.logits + r * kPanel;
    for (Index j = 0; j < kPanel; ++j) logits[j] = ids[j] < 0 ? -kInfinity : scores[ids[j]];
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
      gather_scores(op, state, rows, row, height, slots.ids);
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

/// Whether every row has increasing tokens of its own whose logits are known: then blocks of tokens pass by all rows at once.
bool passes_over_tokens(const Op& op) {
  if (!op.per_query || op.num.cols == 0 || computes_logits(op) || op.own_values.data != nullptr || op.num.cols % kStrip != 0)
    return false;
  for (Index table = 0; table < op.ids.rows; ++table)
    if (increasing_slots(op.ids.data + table * op.ids.stride, op.ids.cols) < 0) return false;
  return true;
}

OwnTokens own_tokens(const Op& op, Index row) {
  const Index query = row % op.first.rows;
  const Index table = op.per_head ? row : query;
  const auto of_table = [&](const auto& slots) { return slots.data == nullptr ? nullptr : slots.data + table * slots.stride; };
  const std::int32_t* ids = op.ids.data + table * op.ids.stride;
  return {.ids = ids,
          .segment_of = of_table(op.segment_of),
          .count = increasing_slots(ids, op.ids.cols),
          .next = 0,
          .weight_num = of_table(op.weight_num),
          .weight_den = of_table(op.weight_den),
          .scores = op.scores.data + row * op.scores.stride,
          .logits = op.logits.data == nullptr ? nullptr : op.logits.data + row * op.logits.stride,
          .first = op.first.data[query],
          .last = op.last.data[query],
          .state = row};
}

void pass_over_tokens(const Op& op, Context& context) {
  const Index states = op.segments * op.queries.rows;
  auto* max_so_far = scratch<float>(context, 0, states);
  auto* den = scratch<double>(context, 1, states);
  for (Index s = 0; s < states; ++s) {
    max_so_far[s] = op.max.data[s * op.max.stride];
    den[s] = static_cast<double>(op.den.data[s * op.den.stride]);
  }
  const Index row_bytes = op.segments * op.num.cols * static_cast<Index>(sizeof(float));
  const Index together = clamp(kStateBytes / row_bytes, 1, kRowsTogether);
  for (Index begin = 0; begin < op.queries.rows; begin += together) {
    OwnTokens rows[kRowsTogether];
    const Index count = min(together, op.queries.rows - begin);
    for (Index r = 0; r < count; ++r) {
      rows[r] = own_tokens(op, begin + r);
      for (Index j = rows[r].count; j < op.ids.cols && rows[r].logits != nullptr; ++j) rows[r].logits[j] = -kInfinity;
    }
    pass_over_tokens(rows, count, op.values.data, op.values.stride, op.num.cols, op.values.rows, op.segments,
                     {max_so_far, den, op.num.data, op.num.stride, op.queries.rows});
  }
  for (Index s = 0; s < states; ++s) {
    op.max.data[s * op.max.stride] = max_so_far[s];
    op.den.data[s * op.den.stride] = static_cast<float>(den[s]);
  }
}

void pass_over_panels(const Op& op, Context& context) {
  for (Index table = 0; table < op.ids.rows; ++table) {
    const Rows rows = readers(op, table);
    const PanelState state = make_state(context, rows.count, op.queries.cols, op.num.cols);
    if (computes_logits(op))
      pack_tiles(op.queries.data + rows.begin * op.queries.stride, op.queries.stride, rows.step, rows.count, state.d, op.scale,
                 state.queries);
    read_state(op, state, rows);
    for (Index begin = 0; begin < op.ids.cols; begin += kPanel)
      process_panel(op, state, rows, table, begin, min(kPanel, op.ids.cols - begin));
    write_state(op, state, rows);
  }
}

/// The slots of one segment, moved together: the same operation with one segment, in scratch memory.
Op only_segment(const Op& op, std::int32_t segment, Context& context) {
  const Index size = op.ids.rows * op.ids.cols;
  auto* ids = scratch<std::int32_t>(context, 8, size);
  auto* num = scratch<float>(context, 9, op.weight_num.data == nullptr ? 0 : size);
  auto* den = scratch<float>(context, 10, op.weight_den.data == nullptr ? 0 : size);
  Index width = 0;
  for (Index table = 0; table < op.ids.rows; ++table) {
    Index count = 0;
    for (Index j = 0; j < op.ids.cols; ++j) {
      if (op.segment_of.data[table * op.segment_of.stride + j] != segment) continue;
      const Index at = table * op.ids.cols + count++;
      ids[at] = op.ids.data[table * op.ids.stride + j];
      if (op.weight_num.data != nullptr) num[at] = op.weight_num.data[table * op.weight_num.stride + j];
      if (op.weight_den.data != nullptr) den[at] = op.weight_den.data[table * op.weight_den.stride + j];
    }
    width = max(width, count);
    for (Index at = table * op.ids.cols + count; at < (table + 1) * op.ids.cols; ++at) {
      ids[at] = -1;
      if (op.weight_num.data != nullptr) num[at] = 0;
      if (op.weight_den.data != nullptr) den[at] = 0;
    }
  }
  Op part = op;
  part.segment_of = {};
  part.segments = 1;
  part.ids = {ids, op.ids.rows, width, op.ids.cols};
  if (op.weight_num.data != nullptr) part.weight_num = {num, op.ids.rows, width, op.ids.cols};
  if (op.weight_den.data != nullptr) part.weight_den = {den, op.ids.rows, width, op.ids.cols};
  const Index first = segment * op.queries.rows;
  part.max.data += first * op.max.stride;
  part.den.data += first * op.den.stride;
  part.num.data += first * op.num.stride;
  return part;
}

}  // namespace

template <>
void run(const Op& op, Context& context) {
  if (!op.accumulate_f64 && passes_over_tokens(op)) return pass_over_tokens(op, context);
  const bool own = op.own_keys.data != nullptr || op.own_values.data != nullptr;
  if (op.accumulate_f64 || (op.segments > 1 && own)) {
    ref::Context reference;
    return ref::run(op, reference);
  }
  if (op.segments > 1) {
    for (std::int32_t s = 0; s < op.segments; ++s) pass_over_panels(only_segment(op, s, context), context);
    return;
  }
  pass_over_panels(op, context);
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
