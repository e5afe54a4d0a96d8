// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/contract/attend.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvbench::methods {
namespace {

/// The operation that adds a table's entries to a state. The caller sets the buffers of the state.
kernels::WeightedAttention<Buffer> attention_over(const EntryTable& t, const HeadTokens& tokens,
                                                  const QueryBlock& queries) {
  const bool exact_logits = !t.token_keys.present() && !t.queries.present();
  return {.queries = t.queries.present() ? t.queries : queries.queries,
          .first = queries.first,
          .last = queries.last,
          .scale = tokens.scale,
          .keys = t.token_keys.present() ? t.token_keys : tokens.keys,
          .values = t.token_values.present() ? t.token_values : tokens.values,
          .scores = exact_logits ? queries.scores : Buffer<const float>(),
          .ids = t.ids,
          .weight_num = t.weight_num,
          .weight_den = t.weight_den,
          .own_keys = t.own_keys,
          .own_values = t.own_values,
          .per_head = t.per_head,
          .per_query = t.per_query,
          .group = tokens.group};
}

}  // namespace

AttentionState empty_state(Backend& backend, Index rows, Index dv) {
  AttentionState state{backend.allocate<float>(rows), backend.allocate<float>(rows), backend.allocate<float>(rows, dv)};
  backend.fill(state.max, -std::numeric_limits<float>::infinity());
  backend.fill(state.den, 0.0f);
  backend.fill(state.num, 0.0f);
  return state;
}

HostState on_host(const AttentionState& state, Backend& backend) {
  return {backend.read(state.max), backend.read(state.den), backend.read(state.num)};
}

void attend(Backend& backend, const HeadTokens& tokens, const QueryBlock& queries, std::span<const EntryTable> tables,
            AttentionState& state, std::vector<Buffer<float>>* logits) {
  for (const EntryTable& t : tables) {
    kernels::WeightedAttention<Buffer> op = attention_over(t, tokens, queries);
    op.max = state.max;
    op.den = state.den;
    op.num = state.num;
    if (logits != nullptr) {
      op.logits = backend.allocate<float>(queries.queries.rows(), t.ids.cols());
      logits->push_back(op.logits);
    }
    backend.run(op);
  }
}

void clamp_outputs(std::span<const EntryTable> tables, HostState& sums, Backend& backend) {
  for (const EntryTable& t : tables) {
    if (!t.range.present()) continue;
    const HostView<float> range = backend.on_host(t.range);
    const std::size_t dv = range.size() / 2;
    for (std::size_t r = 0; r < sums.den.size(); ++r) {
      if (sums.max[r] == -std::numeric_limits<float>::infinity()) continue;
      float& den = sums.den[r];
      if (den == 0) den = -std::numeric_limits<float>::epsilon();
      for (std::size_t c = 0; c < dv; ++c) {
        float& num = sums.num[r * dv + c];
        const float z = den > 0 ? num / den : 0, clamped = std::clamp(z, range[c], range[dv + c]);
        if (clamped != z || den < 0) num = clamped * den;
      }
    }
  }
}

std::vector<Buffer<const float>> observed_weights(std::span<const EntryTable> tables,
                                                  std::span<const Buffer<float>> logits, const HostState& state,
                                                  Backend& backend) {
  std::vector<Buffer<const float>> weights;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    std::vector<float> values = backend.read(logits[t]);
    const std::vector<float> weight_den = backend.read(tables[t].weight_den);
    const auto width = static_cast<std::size_t>(logits[t].cols());
    for (std::size_t k = 0; k < values.size(); ++k) {
      const std::size_t row = k / width;
      const float factor = weight_den.empty() ? 1 : weight_den[(tables[t].per_head ? row : 0) * width + k % width];
      values[k] = factor * std::exp(values[k] - state.max[row]) / state.den[row];
    }
    weights.push_back(backend.adopt(std::move(values), logits[t].rows(), logits[t].cols()));
  }
  return weights;
}

double attend_flops(const HeadTokens& tokens, const QueryBlock& queries, std::span<const EntryTable> tables) {
  double flops = 0;
  for (const EntryTable& t : tables) flops += std::nearbyint(cost(attention_over(t, tokens, queries)).flops);
  return flops;
}

}  // namespace kvbench::methods
