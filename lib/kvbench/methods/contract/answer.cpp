// SPDX-License-Identifier: Apache-2.0
#include <kvbench/methods/contract/answer.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

namespace kvbench {
namespace {

Index table_rows(const EntryTable& table, Index group, Index queries) {
  return (table.per_head ? group : 1) * (table.per_query ? queries : 1);
}

void require(bool holds, const char* fault) {
  if (!holds) throw std::logic_error(std::string("entries break the contract: ") + fault);
}

void check_shape(const EntryTable& t, const HeadTokens& tokens, Index num_queries) {
  require(t.ids.present(), "a table without ids");
  require(t.ids.rows() == table_rows(t, tokens.group, num_queries), "a table with the wrong number of rows for its scope");
  for (const auto* weights : {&t.weight_num, &t.weight_den}) {
    require(!weights->present() || (weights->rows() == t.ids.rows() && weights->cols() == t.ids.cols()),
            "weights of another shape than the ids");
  }
  require(!t.own_keys.present() || (t.own_keys.rows() == t.ids.size() && t.own_keys.cols() == tokens.keys.cols()),
          "own keys that are not [slots, d]");
  require(!t.own_values.present() || (t.own_values.rows() == t.ids.size() && t.own_values.cols() == tokens.values.cols()),
          "own values that are not [slots, dv]");
}

// Without an early end these loops run on vectors: a method's own keys and values are all looked at for every query.
bool all_finite(const HostView<float>& values) {
  constexpr std::uint32_t exponent = 0x7f800000;
  std::uint32_t bad = 0;
  for (const float x : values) bad |= (std::bit_cast<std::uint32_t>(x) & exponent) == exponent ? 1u : 0u;
  return bad == 0;
}

bool all_within(const HostView<std::int32_t>& ids, std::int32_t limit) {
  std::uint32_t bad = 0;
  for (const std::int32_t id : ids) bad |= (id < -1 ? 1u : 0u) | (id >= limit ? 1u : 0u);
  return bad == 0;
}

struct ReadTable {
  HostView<std::int32_t> ids;
  HostView<float> num, den;
};

/// A row of a table as it answers one query head and query.
std::span<const std::int32_t> row_of(const EntryTable& t, const ReadTable& host, Index num_queries, Index g, Index i) {
  const Index row = (t.per_head ? g : 0) * (t.per_query ? num_queries : 1) + (t.per_query ? i : 0);
  return std::span(host.ids).subspan(static_cast<std::size_t>(row * t.ids.cols()), static_cast<std::size_t>(t.ids.cols()));
}

/// Whether it shows at a glance that no id occurs twice: rows increase, and none begins before another ends.
bool plainly_distinct(std::span<const std::span<const std::int32_t>> rows) {
  std::vector<std::pair<std::int32_t, std::int32_t>> ranges;
  for (const auto& row : rows) {
    const auto ids = increasing_ids(row);
    if (!ids) return false;
    if (!ids->empty()) ranges.emplace_back(ids->front(), ids->back());
  }
  std::ranges::sort(ranges);
  return std::ranges::adjacent_find(ranges, [](const auto& a, const auto& b) { return a.second >= b.first; }) == ranges.end();
}

ReadTable read_table(Backend& backend, const EntryTable& t, Index limit) {
  ReadTable host{backend.on_host(t.ids), backend.on_host(t.weight_num), backend.on_host(t.weight_den)};
  require(all_within(host.ids, static_cast<std::int32_t>(limit)), "an id out of range");
  require(all_finite(host.num) && all_finite(host.den), "a weight that is not finite");
  if (t.own_keys.present()) require(all_finite(backend.on_host(t.own_keys)), "an own key that is not finite");
  if (t.own_values.present()) require(all_finite(backend.on_host(t.own_values)), "an own value that is not finite");
  return host;
}

}  // namespace

std::optional<std::span<const std::int32_t>> increasing_ids(std::span<const std::int32_t> row) {
  bool holds = true;
  for (std::size_t s = 1; s < row.size(); ++s) holds &= row[s] < 0 || (row[s - 1] >= 0 && row[s - 1] < row[s]);
  if (!holds) return std::nullopt;
  return row.first(static_cast<std::size_t>(std::ranges::find(row, -1) - row.begin()));
}

AttentionState empty_state(Backend& backend, Index rows, Index dv) {
  AttentionState state{backend.allocate<float>(rows), backend.allocate<float>(rows), backend.allocate<float>(rows, dv)};
  backend.fill(state.max, -std::numeric_limits<float>::infinity());
  backend.fill(state.den, 0.0f);
  backend.fill(state.num, 0.0f);
  return state;
}

void check_entries(Backend& backend, const HeadTokens& tokens, Index num_queries, Index limit,
                   std::span<const EntryTable> tables) {
  std::vector<ReadTable> host;
  bool per_head = false, per_query = false;
  for (const EntryTable& t : tables) {
    check_shape(t, tokens, num_queries);
    host.push_back(read_table(backend, t, limit));
    per_head |= t.per_head;
    per_query |= t.per_query;
  }
  const bool weighted = std::ranges::any_of(host, [](const ReadTable& t) { return !t.num.empty() || !t.den.empty(); });
  // A token may answer a query once in each sum. `seen` holds the number of the last (head, query) that used it; without
  // weights both sums have the same tokens.
  std::vector<std::int32_t> seen_num, seen_den;
  std::vector<std::span<const std::int32_t>> rows(host.size());
  for (Index g = 0; g < (per_head ? tokens.group : 1); ++g) {
    for (Index i = 0; i < (per_query ? num_queries : 1); ++i) {
      for (std::size_t k = 0; k < host.size(); ++k) rows[k] = row_of(tables[k], host[k], num_queries, g, i);
      if (plainly_distinct(rows)) continue;
      seen_num.resize(static_cast<std::size_t>(limit), -1);
      seen_den.resize(weighted ? seen_num.size() : 0, -1);
      const auto stamp = static_cast<std::int32_t>(g * num_queries + i);
      for (std::size_t k = 0; k < host.size(); ++k) {
        for (const std::int32_t& used : rows[k]) {
          if (used < 0) continue;
          const auto s = static_cast<std::size_t>(&used - host[k].ids.data()), id = static_cast<std::size_t>(used);
          if (host[k].num.empty() || host[k].num[s] != 0)
            require(std::exchange(seen_num[id], stamp) != stamp, "an id twice in N");
          if (weighted && (host[k].den.empty() || host[k].den[s] != 0))
            require(std::exchange(seen_den[id], stamp) != stamp, "an id twice in D");
        }
      }
    }
  }
}

kernels::WeightedAttention<Buffer> attention_over(const EntryTable& t, const HeadTokens& tokens, const QueryBlock& queries) {
  return {.queries = queries.queries,
          .first = queries.first,
          .last = queries.last,
          .scale = tokens.scale,
          .keys = tokens.keys,
          .values = tokens.values,
          .scores = queries.scores,
          .ids = t.ids,
          .weight_num = t.weight_num,
          .weight_den = t.weight_den,
          .own_keys = t.own_keys,
          .own_values = t.own_values,
          .per_head = t.per_head,
          .per_query = t.per_query,
          .group = tokens.group,
          .accumulate_f64 = t.accumulate_f64};
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

double attend_flops(const HeadTokens& tokens, const QueryBlock& queries, std::span<const EntryTable> tables) {
  double flops = 0;
  for (const EntryTable& t : tables) flops += std::nearbyint(cost(attention_over(t, tokens, queries)).flops);
  return flops;
}

}  // namespace kvbench
