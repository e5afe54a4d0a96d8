// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/shared_entries.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

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

/// Rows of numbers as a table, filled up with `unused`.
std::vector<std::int32_t> padded(const std::vector<std::int32_t>& numbers, const std::vector<std::size_t>& ends, Index width,
                                 std::int32_t unused) {
  std::vector<std::int32_t> table;
  table.reserve(ends.size() * static_cast<std::size_t>(width));
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    table.insert(table.end(), numbers.begin() + static_cast<std::ptrdiff_t>(begin),
                 numbers.begin() + static_cast<std::ptrdiff_t>(end));
    table.resize(table.size() + static_cast<std::size_t>(width) - (end - begin), unused);
    begin = end;
  }
  return table;
}

}  // namespace

/// Sorts the tokens of one scope into segments.
class SharedEntries::Builder {
 public:
  Builder(std::span<const HostEntries* const> sets, Index tokens, bool per_head, bool per_query)
      : sets_(sets), scope_{.per_head = per_head, .per_query = per_query}, steps_(sets.size()) {
    codes_.resize(static_cast<std::size_t>(tokens + 3) / 4 * 4);
    row_ids_.resize(codes_.size() + 1);
    row_segments_.resize(codes_.size() + 1);
    combination(std::vector<Weight>(sets.size()));  // number 0: in no set
  }

  /// Empty where there are too many combinations of weights.
  std::optional<Scope> build() {
    for (Index row = 0; row < rows(); ++row) {
      for (std::size_t s = 0; s < sets_.size(); ++s) {
        for (const HostEntries::Table& table : sets_[s]->tables()) {
          if (in_scope(table)) mark(s, table, row);
        }
      }
      if (too_many()) return std::nullopt;
      collect();
    }
    scope_.weights.erase(scope_.weights.begin());
    return std::move(scope_);
  }

 private:
  /// What one more set with this weight makes of a combination.
  struct Step {
    std::uint16_t from;
    Weight weight;
    std::uint16_t to;
  };

  bool too_many() const { return scope_.weights.size() > kernels::max_attention_segments + 1; }
  bool in_scope(const HostEntries::Table& table) const {
    return table.per_head == scope_.per_head && table.per_query == scope_.per_query;
  }

  Index rows() const {
    for (const HostEntries* set : sets_) {
      for (const HostEntries::Table& table : set->tables()) {
        if (in_scope(table)) return table.rows;
      }
    }
    return 0;
  }

  std::uint16_t combination(std::vector<Weight> weights) {
    const auto found = std::ranges::find(scope_.weights, weights);
    if (found != scope_.weights.end()) return static_cast<std::uint16_t>(found - scope_.weights.begin());
    scope_.weights.push_back(std::move(weights));
    return static_cast<std::uint16_t>(scope_.weights.size() - 1);
  }

  std::uint16_t step(std::size_t set, std::uint16_t from, Weight weight) {
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

  void mark(std::size_t set, const HostEntries::Table& table, Index row) {
    const std::size_t begin = static_cast<std::size_t>(row * table.width), width = static_cast<std::size_t>(table.width);
    const std::span ids = std::span(table.ids).subspan(begin, width);
    const bool weighted = !table.num.empty() || !table.den.empty();
    // Neighbouring slots mostly have the same weight: what it makes of each combination is kept until the weight changes.
    std::array<std::uint16_t, kernels::max_attention_segments + 2> next;
    next.fill(unknown);
    Weight weight{1, 1};
    for (std::size_t slot = 0; slot < width; ++slot) {
      if (ids[slot] < 0) continue;
      if (weighted) {
        const Weight own{table.num.empty() ? 1 : table.num[begin + slot], table.den.empty() ? 1 : table.den[begin + slot]};
        if (!(own == weight)) next.fill(unknown), weight = own;
      }
      std::uint16_t& code = codes_[static_cast<std::size_t>(ids[slot])];
      if (next[code] == unknown) {
        if (too_many()) return;
        next[code] = step(set, code, weight);
        if (too_many()) return;
      }
      code = next[code];
    }
  }

  /// Moves the marked tokens of a row to the scope, in increasing order.
  void collect() {
    std::size_t count = 0;
    for (std::size_t i = 0; i < codes_.size(); i += 4) {
      std::uint64_t four;
      std::memcpy(&four, &codes_[i], sizeof four);
      if (four == 0) continue;
      for (std::size_t j = i; j < i + 4; ++j) {
        row_ids_[count] = static_cast<std::int32_t>(j);
        row_segments_[count] = codes_[j] - 1;
        count += codes_[j] != 0;
        codes_[j] = 0;
      }
    }
    const auto end = static_cast<std::ptrdiff_t>(count);
    scope_.ids.insert(scope_.ids.end(), row_ids_.begin(), row_ids_.begin() + end);
    scope_.segment_of.insert(scope_.segment_of.end(), row_segments_.begin(), row_segments_.begin() + end);
    scope_.ends.push_back(scope_.ids.size());
  }

  static constexpr std::uint16_t unknown = std::numeric_limits<std::uint16_t>::max();

  std::span<const HostEntries* const> sets_;
  Scope scope_;
  std::vector<std::uint16_t> codes_;  ///< by token: its combination so far
  std::vector<std::int32_t> row_ids_, row_segments_;
  std::vector<std::vector<Step>> steps_;
};

std::optional<SharedEntries> SharedEntries::of(std::span<const HostEntries* const> sets, Index tokens) {
  SharedEntries shared;
  double in_sets = 0, in_segments = 0;
  for (const HostEntries* set : sets) {
    double slots = 0;
    for (const HostEntries::Table& table : set->tables()) {
      if (table.own || table.fp64) return std::nullopt;
      slots += static_cast<double>(std::ranges::count_if(table.ids, [](std::int32_t id) { return id >= 0; }));
    }
    shared.slots_.push_back(slots);
    in_sets += slots;
  }
  for (const auto& [per_head, per_query] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
    std::optional<Scope> scope = Builder(sets, tokens, per_head, per_query).build();
    if (!scope) return std::nullopt;
    in_segments += static_cast<double>(scope->ids.size());
    if (!scope->ids.empty()) shared.scopes_.push_back(std::move(*scope));
  }
  if (in_segments > worthwhile * in_sets) return std::nullopt;
  return shared;
}

std::vector<HostState> SharedEntries::attend_to(const Scope& scope, const HeadTokens& tokens, const QueryBlock& queries,
                                                Backend& backend) {
  const Index rows = queries.queries.rows(), segments = std::ssize(scope.weights), tables = std::ssize(scope.ends);
  std::size_t widest = 0, begin = 0;
  for (const std::size_t end : scope.ends) widest = std::max(widest, end - std::exchange(begin, end));
  const auto width = static_cast<Index>(widest);
  const AttentionState state = empty_state(backend, segments * rows, tokens.values.cols());
  const EntryTable table{.per_head = scope.per_head,
                         .per_query = scope.per_query,
                         .ids = backend.adopt(padded(scope.ids, scope.ends, width, -1), tables, width)};
  kernels::WeightedAttention<Buffer> op = attention_over(table, tokens, queries);
  op.segment_of = backend.adopt(padded(scope.segment_of, scope.ends, width, 0), tables, width);
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
                                             Backend& backend) const {
  std::vector<SetAnswer> answers(slots_.size(), {fixed, fixed});
  for (const Scope& scope : scopes_) {
    const std::vector<HostState> states = attend_to(scope, tokens, queries, backend);
    for (std::size_t segment = 0; segment < states.size(); ++segment) {
      for (std::size_t s = 0; s < answers.size(); ++s) {
        const Weight weight = scope.weights[segment][s];
        if (weight == Weight{}) continue;
        add(states[segment], weight.num, weight.den, answers[s].all);
        if (weight == Weight{1, 1}) add(states[segment], 1, 1, answers[s].plain);
      }
    }
  }
  return answers;
}

}  // namespace kvbench
