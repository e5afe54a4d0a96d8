// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/answer/shared_entries.hpp>

#include <algorithm>
#include <cmath>
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

}  // namespace

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
    std::optional<Segments> scope = find_segments(sets, tokens, per_head, per_query);
    if (!scope) return std::nullopt;
    in_segments += static_cast<double>(scope->tokens);
    if (scope->tokens > 0) shared.scopes_.push_back(std::move(*scope));
  }
  if (in_segments > worthwhile * in_sets) return std::nullopt;
  return shared;
}

std::vector<HostState> SharedEntries::attend_to(Segments& scope, const HeadTokens& tokens, const QueryBlock& queries,
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
  for (Segments& scope : scopes_) {
    const std::vector<HostState> states = attend_to(scope, tokens, queries, backend);
    for (std::size_t segment = 0; segment < states.size(); ++segment) {
      for (std::size_t s = 0; s < answers.size(); ++s) {
        const SetWeight weight = scope.weights[segment][s];
        if (weight == SetWeight{}) continue;
        add(states[segment], weight.num, weight.den, answers[s].all);
        if (!plain_[s] && weight == SetWeight{1, 1}) add(states[segment], 1, 1, answers[s].plain);
      }
    }
  }
  for (std::size_t s = 0; s < answers.size(); ++s) {
    if (plain_[s]) answers[s].plain = answers[s].all;
  }
  return answers;
}

}  // namespace kvbench
