// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/shared_entries.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

namespace kvbench {
namespace {

constexpr double worthwhile = 0.9;  // tokens of all segments over slots of all sets

float shrink(float max, float larger) { return max == larger ? 1 : std::exp(max - larger); }

/// state += part with these weights. Rows of `dv` columns.
void add(const HostState& part, float weight_num, float weight_den, HostState& state) {
  const std::size_t rows = state.max.size(), dv = state.num.size() / rows;
  for (std::size_t r = 0; r < rows; ++r) {
    if (part.max[r] == -std::numeric_limits<float>::infinity()) continue;
    const float max = std::max(state.max[r], part.max[r]);
    const float old = shrink(state.max[r], max), scale = shrink(part.max[r], max);
    const float factor_num = weight_num * scale, factor_den = weight_den * scale;
    state.max[r] = max;
    state.den[r] = state.den[r] * old + part.den[r] * factor_den;
    float* to = state.num.data() + r * dv;
    const float* from = part.num.data() + r * dv;
    for (std::size_t c = 0; c < dv; ++c) to[c] = to[c] * old + from[c] * factor_num;
  }
}

/// The places of the bits that are set in a mask of 8, and how many there are.
struct MarkedOf8 {
  std::array<std::int32_t, 8> place{};
  std::size_t count = 0;
};

std::array<MarkedOf8, 256> marked_by_mask() {
  std::array<MarkedOf8, 256> table;
  for (unsigned mask = 0; mask < 256; ++mask) {
    for (int bit = 0; bit < 8; ++bit) {
      if ((mask >> bit & 1u) != 0) table[mask].place[table[mask].count++] = bit;
    }
  }
  return table;
}

}  // namespace

/// Sorts the tokens of one scope into segments.
class SharedEntries::Builder {
 public:
  Builder(std::span<const HostEntries* const> sets, Index tokens, bool per_head, bool per_query)
      : sets_(sets), scope_{.per_head = per_head, .per_query = per_query}, steps_(sets.size()) {
    combination(std::vector<Weight>(sets.size()));  // number 0: in no set
    for (const HostEntries* set : sets) {
      Index slots = 0;
      for (const auto& table : set->tables()) {
        if (!in_scope(*table)) continue;
        scope_.rows = table->rows;
        slots += table->width;
      }
      scope_.width = std::max(scope_.width, slots);
    }
    if (scope_.width == 0) return;
    codes_.resize(static_cast<std::size_t>(tokens + 7) / 8 * 8);
    marked_.resize(codes_.size() + 8);
    scope_.ids.assign(static_cast<std::size_t>(scope_.rows * scope_.width), -1);
    ends_.reserve(static_cast<std::size_t>(scope_.rows));
  }

  /// Empty where there are too many combinations of weights.
  std::optional<Scope> build() {
    const std::vector<Layer> layers = in_layers();
    if (too_many()) return std::nullopt;
    const bool in_order = are_segments(layers);
    for (Index row = 0; row < scope_.rows && scope_.width > 0; ++row) {
      if (in_order) {
        join(layers, row);
        continue;
      }
      for (const Layer& layer : layers) mark(layer, row);
      for (std::size_t s = 0; s < sets_.size() && layers.empty(); ++s) {
        for (const auto& table : sets_[s]->tables()) {
          if (in_scope(*table)) mark(s, *table, row);
        }
      }
      if (too_many()) return std::nullopt;
      collect(row);
    }
    scope_.weights.erase(scope_.weights.begin());
    for (const Ends& row : ends_) {
      scope_.segment_end.insert(scope_.segment_end.end(), row.begin(), row.begin() + std::ssize(scope_.weights));
    }
    return std::move(scope_);
  }

 private:
  using Code = std::uint8_t;  ///< number of a combination of weights

  /// What one more set with this weight makes of a combination.
  struct Step {
    Code from;
    Weight weight;
    Code to;
  };

  bool too_many() const { return scope_.weights.size() > kernels::max_attention_segments + 1; }
  bool in_scope(const HostTable& table) const {
    return table.per_head == scope_.per_head && table.per_query == scope_.per_query;
  }

  /// A table and the combination of the sets that hold it.
  struct Layer {
    const HostTable* table;
    Code code;
  };

  /// The tables of the scope where one set holds all of them, so that no token is in two, and none has weights; else empty.
  std::vector<Layer> in_layers() {
    std::vector<const HostTable*> all;
    std::size_t most = 0;
    for (const HostEntries* set : sets_) {
      std::size_t held = 0;
      for (const auto& table : set->tables()) {
        if (!in_scope(*table)) continue;
        if (table->weighted()) return {};
        if (std::ranges::find(all, table.get()) == all.end()) all.push_back(table.get());
        ++held;
      }
      most = std::max(most, held);
    }
    std::vector<Layer> layers;
    for (const HostTable* table : all) {
      if (most < all.size() || too_many()) return {};
      std::vector<Weight> weights;
      for (const HostEntries* set : sets_) {
        const bool held =
            std::ranges::find(set->tables(), table, &std::shared_ptr<const HostTable>::get) != set->tables().end();
        weights.push_back(held ? Weight{1, 1} : Weight{});
      }
      layers.push_back({table, combination(std::move(weights))});
    }
    return layers;
  }

  /// Whether each layer is a segment as it stands.
  static bool are_segments(const std::vector<Layer>& layers) {
    for (std::size_t k = 0; k < layers.size(); ++k) {
      if (layers[k].code != k + 1 || !layers[k].table->increasing) return false;
    }
    return !layers.empty();
  }

  /// A row of the layers, one after the other.
  void join(const std::vector<Layer>& layers, Index row) {
    const auto begin = scope_.ids.begin() + row * scope_.width;
    auto to = begin;
    Ends& ends = ends_.emplace_back();
    for (const Layer& layer : layers) {
      const auto ids = layer.table->ids.begin() + row * layer.table->width;
      to = std::copy(ids, std::find(ids, ids + layer.table->width, -1), to);
      ends[layer.code - std::size_t{1}] = static_cast<std::int32_t>(to - begin);
    }
    scope_.tokens += to - begin;
  }

  /// Gives the tokens of a row of a layer its combination.
  void mark(const Layer& layer, Index row) {
    Code* const codes = codes_.data();
    const std::int32_t* const ids = layer.table->ids.data() + row * layer.table->width;
    for (Index slot = 0; slot < layer.table->width; ++slot) {
      if (ids[slot] >= 0) codes[ids[slot]] = layer.code;
    }
  }

  Code combination(std::vector<Weight> weights) {
    const auto found = std::ranges::find(scope_.weights, weights);
    if (found != scope_.weights.end()) return static_cast<Code>(found - scope_.weights.begin());
    scope_.weights.push_back(std::move(weights));
    return static_cast<Code>(scope_.weights.size() - 1);
  }

  Code step(std::size_t set, Code from, Weight weight) {
    std::vector<Step>& known = steps_[set];
    for (const Step& s : known) {
      if (s.from == from && s.weight == weight) return s.to;
    }
    std::vector<Weight> weights = scope_.weights[from];
    weights[set].num += weight.num;  // a token may be in two tables of a set, once in each sum
    weights[set].den += weight.den;
    known.push_back({from, weight, combination(std::move(weights))});
    return known.back().to;
  }

  void mark(std::size_t set, const HostTable& table, Index row) {
    const auto begin = static_cast<std::size_t>(row * table.width), width = static_cast<std::size_t>(table.width);
    const std::int32_t* const ids = table.ids.data() + begin;
    Code* const codes = codes_.data();  // a local: bytes may alias every member
    // Neighbouring slots mostly have the same weight: what it makes of each combination is kept until the weight changes.
    std::array<Code, max_segments + 2> next;
    next.fill(unknown);
    Weight weight{1, 1};
    const bool weighted = table.weighted();
    for (std::size_t slot = 0; slot < width; ++slot) {
      if (ids[slot] < 0) continue;
      if (weighted) {
        const Weight own{table.num.empty() ? 1 : table.num[begin + slot], table.den.empty() ? 1 : table.den[begin + slot]};
        if (!(own == weight)) next.fill(unknown), weight = own;
      }
      const Code code = codes[ids[slot]];
      if (next[code] == unknown) {
        if (too_many()) return;
        next[code] = step(set, code, weight);
        if (too_many()) return;
      }
      codes[ids[slot]] = next[code];
    }
  }

  /// Moves the marked tokens of a row to the scope, each segment in increasing order.
  void collect(Index row) {
    while (row_ids_.size() + 1 < scope_.weights.size()) row_ids_.emplace_back(codes_.size());
    std::array<std::size_t, max_segments> counts{};
    std::array<std::int32_t*, max_segments> to_segment{};
    std::ranges::transform(row_ids_, to_segment.begin(), [](auto& ids) { return ids.data(); });
    const std::int32_t* const marked = marked_.data();
    const Code* const codes = codes_.data();
    const std::size_t count = list_marked();
    for (std::size_t j = 0; j < count; ++j) {
      const std::size_t segment = codes[marked[j]] - std::size_t{1};
      to_segment[segment][counts[segment]++] = marked[j];
    }
    std::ranges::fill(codes_, Code{0});
    const auto total = std::accumulate(counts.begin(), counts.end(), Index{0});
    if (total > scope_.width) widen(row, total);
    scope_.tokens += total;
    Ends& ends = ends_.emplace_back();
    auto to = scope_.ids.begin() + row * scope_.width;
    for (std::size_t s = 0; s < max_segments; ++s) {
      if (counts[s] > 0) to = std::copy_n(row_ids_[s].begin(), counts[s], to);
      ends[s] = static_cast<std::int32_t>(to - (scope_.ids.begin() + row * scope_.width));
    }
  }

  /// Writes the tokens that have a code to marked_, in increasing order, and returns how many. Eight tokens at a time and
  /// without a branch for each: which of them are marked is hard to foresee.
  std::size_t list_marked() {
    static const std::array<MarkedOf8, 256> by_mask = marked_by_mask();
    const Code* const codes = codes_.data();
    std::int32_t* const marked = marked_.data();
    std::size_t count = 0;
    for (std::size_t i = 0; i < codes_.size(); i += 8) {
      std::uint64_t eight;
      std::memcpy(&eight, codes + i, sizeof eight);
      if (eight == 0) continue;
      // The top bit of each byte that is not 0 (codes lie below 128), then these bits side by side.
      const std::uint64_t tops = (eight + 0x7f7f7f7f7f7f7f7f) >> 7 & 0x0101010101010101;
      const MarkedOf8& of = by_mask[tops * 0x0102040810204080 >> 56];
      for (std::size_t k = 0; k < 8; ++k) marked[count + k] = static_cast<std::int32_t>(i) + of.place[k];
      count += of.count;
    }
    return count;
  }

  /// Makes room for rows that hold more than any set does; those before `rows` are filled.
  void widen(Index rows, Index width) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(scope_.rows * width), -1);
    for (Index r = 0; r < rows; ++r) {
      std::copy_n(scope_.ids.begin() + r * scope_.width, scope_.width, ids.begin() + r * width);
    }
    scope_.ids = std::move(ids);
    scope_.width = width;
  }

  static constexpr std::size_t max_segments = kernels::max_attention_segments;
  static constexpr Code unknown = std::numeric_limits<Code>::max();
  using Ends = std::array<std::int32_t, max_segments>;

  std::span<const HostEntries* const> sets_;
  Scope scope_;
  std::vector<Code> codes_;  ///< by token: its combination so far
  std::vector<std::int32_t> marked_;
  std::vector<std::vector<std::int32_t>> row_ids_;  ///< by segment, of the row at hand
  std::vector<Ends> ends_;                          ///< by row: segment_end, of segments that may yet come too
  std::vector<std::vector<Step>> steps_;
};

std::optional<SharedEntries> SharedEntries::of(std::span<const HostEntries* const> sets, Index tokens) {
  SharedEntries shared;
  double in_sets = 0, in_segments = 0;
  for (const HostEntries* set : sets) {
    double slots = 0;
    for (const auto& table : set->tables()) {
      if (table->own || table->fp64) return std::nullopt;
      slots += static_cast<double>(table->used);
    }
    shared.slots_.push_back(slots);
    shared.plain_.push_back(set->all_plain());
    in_sets += slots;
  }
  for (const auto& [per_head, per_query] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    std::optional<Scope> scope = Builder(sets, tokens, per_head, per_query).build();
    if (!scope) return std::nullopt;
    in_segments += static_cast<double>(scope->tokens);
    if (scope->tokens > 0) shared.scopes_.push_back(std::move(*scope));
  }
  if (in_segments > worthwhile * in_sets) return std::nullopt;
  return shared;
}

std::vector<HostState> SharedEntries::attend_to(Scope& scope, const HeadTokens& tokens, const QueryBlock& queries,
                                                Backend& backend) {
  const Index rows = queries.queries.rows(), segments = std::ssize(scope.weights);
  const AttentionState state = empty_state(backend, segments * rows, tokens.values.cols());
  const EntryTable table{.per_head = scope.per_head,
                         .per_query = scope.per_query,
                         .ids = backend.adopt(std::move(scope.ids), scope.rows, scope.width)};
  kernels::WeightedAttention<Buffer> op = attention_over(table, tokens, queries);
  op.segment_end = backend.adopt(std::move(scope.segment_end), scope.rows, segments);
  op.segments = segments;
  op.max = state.max;
  op.den = state.den;
  op.num = state.num;
  backend.run(op);
  std::vector<HostState> states;
  for (Index s = 0; s < segments; ++s) {
    const auto part = [&](const Buffer<float>& all) { return backend.read(all.slice(s * rows, rows)); };
    states.push_back({part(state.max), part(state.den), part(state.num)});
  }
  return states;
}

std::vector<SetAnswer> SharedEntries::attend(const HeadTokens& tokens, const QueryBlock& queries, const HostState& fixed,
                                             Backend& backend) && {
  std::vector<SetAnswer> answers(slots_.size(), {fixed, fixed});
  for (Scope& scope : scopes_) {
    const std::vector<HostState> states = attend_to(scope, tokens, queries, backend);
    for (std::size_t segment = 0; segment < states.size(); ++segment) {
      for (std::size_t s = 0; s < answers.size(); ++s) {
        const Weight weight = scope.weights[segment][s];
        if (weight == Weight{}) continue;
        add(states[segment], weight.num, weight.den, answers[s].all);
        if (!plain_[s] && weight == Weight{1, 1}) add(states[segment], 1, 1, answers[s].plain);
      }
    }
  }
  for (std::size_t s = 0; s < answers.size(); ++s) {
    if (plain_[s]) answers[s].plain = answers[s].all;
  }
  return answers;
}

}  // namespace kvbench
