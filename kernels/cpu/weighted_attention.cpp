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

/// Logits of `height` rows from the scores kept; any number in unused slots. The next row's are on their way meanwhile.
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

/// `first` = row of the state of query row 0.
void read_state(const Op& op, const PanelState& state, Rows rows, Index first) {
  for (Index r = 0; r < rows.count; ++r) {
    const Index row = first + rows.begin + r * rows.step;
    state.max[r] = op.max.data[row * op.max.stride];
    state.den[r] = static_cast<double>(op.den.data[row * op.den.stride]);
    for (Index c = 0; c < state.dv_padded; ++c)
      state.num[r * state.dv_padded + c] = c < state.dv ? op.num.data[row * op.num.stride + c] : 0;
  }
}

void write_state(const Op& op, const PanelState& state, Rows rows, Index first) {
  for (Index r = 0; r < rows.count; ++r) {
    const Index row = first + rows.begin + r * rows.step;
    op.max.data[row * op.max.stride] = state.max[r];
    op.den.data[row * op.den.stride] = static_cast<float>(state.den[r]);
    for (Index c = 0; c < state.dv; ++c) op.num.data[row * op.num.stride + c] = state.num[r * state.dv_padded + c];
  }
}

struct SlotRange {
  Index begin, end;
};

/// The slots of segment `s` in a row of the table.
SlotRange segment_slots(const Op& op, Index table, Index s) {
  if (op.segment_end.data == nullptr) return {0, op.ids.cols};
  const std::int32_t* ends = op.segment_end.data + table * op.segment_end.stride;
  return {s == 0 ? 0 : ends[s - 1], ends[s]};
}

/// Whether every row has tokens of its own whose logits are known, increasing inside each segment: then blocks of tokens pass
/// by all rows at once.
bool passes_over_tokens(const Op& op) {
  if (!op.per_query || op.num.cols == 0 || computes_logits(op) || op.own_values.data != nullptr || op.num.cols % kStrip != 0)
    return false;
  for (Index table = 0; table < op.ids.rows; ++table)
    for (Index s = 0; s < op.segments; ++s) {
      const SlotRange slots = segment_slots(op, table, s);
      if (!increases(op.ids.data + table * op.ids.stride + slots.begin, slots.end - slots.begin)) return false;
    }
  return true;
}

Index table_of(const Op& op, Index row) { return op.per_head ? row : row % op.first.rows; }

OwnRow own_row(const Op& op, Index row) {
  const Index query = row % op.first.rows, table = table_of(op, row);
  const auto of_table = [&](const auto& slots) { return slots.data == nullptr ? nullptr : slots.data + table * slots.stride; };
  return {.weight_num = of_table(op.weight_num),
          .weight_den = of_table(op.weight_den),
          .scores = op.scores.data + row * op.scores.stride,
          .logits = op.logits.data == nullptr ? nullptr : op.logits.data + row * op.logits.stride,
          .first = op.first.data[query],
          .last = op.last.data[query]};
}

/// `den` = denominators of all states.
OwnRun own_run(const Op& op, Index row, Index segment, double* den) {
  const std::int32_t* ids = op.ids.data + table_of(op, row) * op.ids.stride;
  const SlotRange slots = segment_slots(op, table_of(op, row), segment);
  const Index state = segment * op.queries.rows + row;
  return {.ids = ids,
          .next = slots.begin,
          .end = slots.begin + used_slots(ids + slots.begin, slots.end - slots.begin),
          .stop = slots.begin,
          .weights = nullptr,
          .max = op.max.data + state * op.max.stride,
          .den = den + state,
          .num = op.num.data + state * op.num.stride};
}

void pass_over_tokens(const Op& op, Context& context) {
  const Index states = op.segments * op.queries.rows, dv = op.num.cols;
  const Index row_bytes = op.segments * dv * static_cast<Index>(sizeof(float));
  const Index together = min(clamp(kStateBytes / row_bytes, 1, kRowsTogether), op.queries.rows);
  auto* den = scratch<double>(context, 0, states);
  auto* weights = scratch<float>(context, 1, together * span_weights(op.values.rows, op.segments));
  auto* rows = scratch<OwnRow>(context, 2, together);
  auto* runs = scratch<OwnRun>(context, 3, together * op.segments);
  for (Index s = 0; s < states; ++s) den[s] = static_cast<double>(op.den.data[s * op.den.stride]);
  for (Index begin = 0; begin < op.queries.rows; begin += together) {
    const Index count = min(together, op.queries.rows - begin);
    for (Index r = 0; r < count; ++r) {
      rows[r] = own_row(op, begin + r);
      for (Index s = 0; s < op.segments; ++s) runs[r * op.segments + s] = own_run(op, begin + r, s, den);
      for (Index j = runs[r].end; j < op.ids.cols && rows[r].logits != nullptr; ++j) rows[r].logits[j] = -kInfinity;
    }
    pass_over_tokens(rows, runs, count, op.segments, op.values.data, op.values.stride, dv, op.values.rows, weights);
  }
  for (Index s = 0; s < states; ++s) op.den.data[s * op.den.stride] = static_cast<float>(den[s]);
}

void pass_over_panels(const Op& op, Context& context) {
  for (Index table = 0; table < op.ids.rows; ++table) {
    const Rows rows = readers(op, table);
    const PanelState state = make_state(context, rows.count, op.queries.cols, op.num.cols);
    if (computes_logits(op))
      pack_tiles(op.queries.data + rows.begin * op.queries.stride, op.queries.stride, rows.step, rows.count, state.d, op.scale,
                 state.queries);
    for (Index s = 0; s < op.segments; ++s) {
      const SlotRange slots = segment_slots(op, table, s);
      read_state(op, state, rows, s * op.queries.rows);
      for (Index begin = slots.begin; begin < slots.end; begin += kPanel)
        process_panel(op, state, rows, table, begin, min(kPanel, slots.end - begin));
      write_state(op, state, rows, s * op.queries.rows);
    }
  }
}

/// Whether to compute the logits of tokens that all queries of a head share is faster than to look them up, each in a cache
/// line of its own.
bool computes_faster(const Op& op) {
  constexpr Index kLine = 64 / Index{sizeof(float)};
  constexpr Index kLineCost = 240;  // of a line, in products: 5 ns
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
  if (op.accumulate_f64) {
    ref::Context reference;
    return ref::run(op, reference);
  }
  if (passes_over_tokens(op)) return pass_over_tokens(op, context);
  Op panels = op;
  if (!computes_logits(op) && computes_faster(op)) panels.scores = {};
  pass_over_panels(panels, context);
}

}  // namespace kvbench::kernels::cpu::KVBENCH_ISA
