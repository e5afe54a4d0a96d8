// SPDX-License-Identifier: Apache-2.0
#include <kvbench/testing/head.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <kvbench/kernels/philox.hpp>

namespace kvbench::testing {
namespace {

std::vector<float> rows_of(const std::vector<float>& matrix, Index cols, Index begin, Index end) {
  return {matrix.begin() + begin * cols, matrix.begin() + end * cols};
}

/// Row `slot` of `own`; empty where it equals the row of token `id`.
std::vector<float> own_row(const std::vector<float>& own, Index slot, const std::vector<float>& tokens, TokenId id,
                           Index cols) {
  std::vector<float> row = rows_of(own, cols, slot, slot + 1);
  return row == rows_of(tokens, cols, id, id + 1) ? std::vector<float>{} : row;
}

Buffer<float> upload(const std::vector<float>& matrix, Index cols, Index begin, Index end, Backend& backend) {
  return backend.adopt(rows_of(matrix, cols, begin, end), end - begin, cols);
}

/// Query rows g*m + i of the positions begin .. end - 1.
Buffer<float> upload_queries(const HeadData& head, Index begin, Index end, Backend& backend) {
  std::vector<float> rows;
  for (Index g = 0; g < head.group; ++g) {
    const auto part = rows_of(head.queries, head.d, g * head.total + begin, g * head.total + end);
    rows.insert(rows.end(), part.begin(), part.end());
  }
  return backend.adopt(std::move(rows), head.group * (end - begin), head.d);
}

struct Exact {
  Buffer<float> out, max, log_sum_exp, scores;
};

Exact attend_exactly(const HeadData& head, const methods::QueryBlock& queries, Index tokens, Backend& backend) {
  const Index rows = queries.queries.rows();
  Exact exact{backend.allocate<float>(rows, head.dv), backend.allocate<float>(rows), backend.allocate<float>(rows),
              backend.allocate<float>(rows, tokens)};
  backend.run(kernels::ExactAttention<Buffer>{.queries = queries.queries,
                                              .keys = upload(head.keys, head.d, 0, tokens, backend),
                                              .values = upload(head.values, head.dv, 0, tokens, backend),
                                              .first = queries.first,
                                              .last = queries.last,
                                              .scale = head.scale,
                                              .out = exact.out,
                                              .max = exact.max,
                                              .log_sum_exp = exact.log_sum_exp,
                                              .scores = exact.scores});
  return exact;
}

methods::QueryBlock causal_block(const HeadData& head, Index begin, Index end, Backend& backend) {
  methods::QueryBlock block{.queries = upload_queries(head, begin, end, backend)};
  block.positions.resize(static_cast<std::size_t>(end - begin));
  std::iota(block.positions.begin(), block.positions.end(), static_cast<std::int32_t>(begin));
  std::vector<std::int32_t> last(block.positions);
  for (std::int32_t& bound : last) ++bound;
  std::vector<std::int32_t> first(last.size(), 0);
  for (std::size_t i = 0; head.window > 0 && i < last.size(); ++i)
    first[i] = std::max(0, last[i] - static_cast<std::int32_t>(head.window));
  block.first = backend.adopt(std::move(first), end - begin);
  block.last = backend.adopt(std::move(last), end - begin);
  return block;
}

bool has(const HeadData& head, methods::Part part) { return std::ranges::find(head.lacks, part) == head.lacks.end(); }

Index table_row(const methods::EntryTable& table, Index g, Index i, Index queries) {
  return (table.per_head ? g : 0) * (table.per_query ? queries : 1) + (table.per_query ? i : 0);
}

}  // namespace

std::vector<float> random_numbers(Index count, std::uint32_t stream, std::uint32_t part) {
  std::vector<float> numbers;
  for (std::uint32_t i = 0; i < count; ++i) {
    const PhiloxBlock words = philox4x32({{i, part, stream, 0}}, {7, 11});
    numbers.push_back(static_cast<float>(4 * uniform52(words.x[0], words.x[1]) - 2));
  }
  return numbers;
}

HeadData random_head(const Shape& shape, std::uint32_t stream, Backend& backend) {
  HeadData head{.n = shape.n, .total = shape.n + shape.decoded, .d = shape.d, .dv = shape.dv, .group = shape.group};
  head.scale = 1 / std::sqrt(static_cast<float>(head.d));
  head.pre_rope = random_numbers(head.total * head.d, stream, 0);
  head.values = random_numbers(head.total * head.dv, stream, 1);
  head.queries = random_numbers(head.group * head.total * head.d, stream, 2);
  if (head.d % 2 != 0) {
    head.keys = head.pre_rope;
    head.pre_rope.clear();
    return head;
  }
  head.rope = methods::Rope{.theta = 100};
  std::vector<std::int64_t> positions(static_cast<std::size_t>(head.total));
  std::iota(positions.begin(), positions.end(), 0);
  const auto turned = backend.allocate<float>(head.total, head.d);
  backend.run(kernels::RotateRows<Buffer>{.rows = upload(head.pre_rope, head.d, 0, head.total, backend),
                                          .offsets = backend.adopt(std::move(positions), head.total),
                                          .theta = head.rope->theta,
                                          .rotary_dims = head.d,
                                          .out = turned});
  head.keys = backend.read(turned);
  return head;
}

methods::HeadPrompt prompt_of(const HeadData& head, Backend& backend) {
  methods::HeadPrompt prompt{.prompt = head.prompt,
                             .layer = head.layer,
                             .head = head.head,
                             .num_layers = 4,
                             .num_caches = 4,
                             .depth = head.layer.value,
                             .num_kv_heads = 8};
  prompt.group = head.group;
  prompt.window = head.window;
  prompt.scale = head.scale;
  prompt.rope = head.rope;
  prompt.keys = upload(head.keys, head.d, 0, head.n, backend);
  prompt.values = upload(head.values, head.dv, 0, head.n, backend);
  if (!head.pre_rope.empty() && has(head, methods::Part::keys_pre_rope))
    prompt.keys_pre_rope = upload(head.pre_rope, head.d, 0, head.n, backend);
  constexpr Index sketch_columns = 5;
  if (has(head, methods::Part::output_sketch)) {
    prompt.output_sketch = backend.adopt(random_numbers(head.group * head.dv * sketch_columns, 0, 4),
                                         head.group * head.dv, sketch_columns);
  }
  if (head.n == 0) return prompt;
  const methods::QueryBlock observed = causal_block(head, 0, head.n, backend);
  if (has(head, methods::Part::observed_queries)) {
    prompt.observed = observed.queries;
    prompt.observed_positions = observed.positions;
  }
  if (head.window > 0 || !has(head, methods::Part::column_sums)) return prompt;
  const Exact exact = attend_exactly(head, observed, head.n, backend);
  const auto sums = backend.allocate<float>(head.group, head.n);
  backend.run(kernels::ColumnSums<Buffer>{.scores = exact.scores, .log_sum_exp = exact.log_sum_exp, .out = sums});
  prompt.column_sums = sums;
  return prompt;
}

methods::HeadTokens tokens_of(const HeadData& head, Index end, Backend& backend) {
  return {.keys = upload(head.keys, head.d, 0, end, backend),
          .values = upload(head.values, head.dv, 0, end, backend),
          .scale = head.scale,
          .group = head.group};
}

methods::TokenBlock token_block(const HeadData& head, Index begin, Index end, Backend& backend) {
  return {.first = begin,
          .keys = upload(head.keys, head.d, begin, end, backend),
          .values = upload(head.values, head.dv, begin, end, backend)};
}

methods::QueryBlock query_block(const HeadData& head, Index begin, Index end, Index tokens, Backend& backend) {
  methods::QueryBlock block = causal_block(head, begin, end, backend);
  if (has(head, methods::Part::speculated_queries)) block.speculated = block.queries;
  const Exact exact = attend_exactly(head, block, tokens, backend);
  block.scores = exact.scores;
  block.outputs = exact.out;
  block.log_sum_exp = exact.log_sum_exp;
  return block;
}

std::vector<float> exact_answer(const HeadData& head, const methods::QueryBlock& queries, Backend& backend) {
  return backend.read(attend_exactly(head, queries, queries.positions.back() + 1, backend).out);
}

methods::EntryTable exact_entries(Index begin, Index end, Backend& backend) {
  std::vector<TokenId> ids(static_cast<std::size_t>(end - begin));
  std::iota(ids.begin(), ids.end(), static_cast<TokenId>(begin));
  return {.ids = backend.adopt(std::move(ids), 1, end - begin)};
}

std::vector<float> answers_of(const methods::HostState& sums) {
  std::vector<float> out = sums.num;
  const std::size_t dv = out.size() / std::max<std::size_t>(1, sums.den.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = sums.den[i / dv] == 0 ? 0 : out[i] / sums.den[i / dv];
  return out;
}

std::vector<float> answer(const HeadData& head, const methods::QueryBlock& queries, const methods::EntryTables& tables,
                          Backend& backend) {
  methods::AttentionState state = methods::empty_state(backend, queries.queries.rows(), head.dv);
  attend(backend, tokens_of(head, queries.scores.cols(), backend), queries, tables, state);
  methods::HostState sums = methods::on_host(state, backend);
  methods::clamp_outputs(tables, sums, backend);
  return answers_of(sums);
}

std::vector<std::vector<Entry>> visible_entries(const HeadData& head, const methods::EntryTables& tables,
                                                const methods::QueryBlock& queries, Backend& backend) {
  const Index m = queries.size();
  const auto first = backend.read(queries.first), last = backend.read(queries.last);
  std::vector<std::vector<Entry>> rows(static_cast<std::size_t>(head.group * m));
  for (const methods::EntryTable& table : tables) {
    const auto ids = backend.read(table.ids);
    const auto num = backend.read(table.weight_num), den = backend.read(table.weight_den);
    const auto keys = backend.read(table.own_keys), values = backend.read(table.own_values);
    const auto token_keys = backend.read(table.token_keys), token_values = backend.read(table.token_values);
    for (Index r = 0; r < head.group * m; ++r) {
      const auto i = static_cast<std::size_t>(r % m);
      const Index row = table_row(table, r / m, r % m, m);
      for (Index slot = row * table.ids.cols(); slot < (row + 1) * table.ids.cols(); ++slot) {
        const auto s = static_cast<std::size_t>(slot);
        if (ids[s] < 0 || ids[s] < first[i] || ids[s] >= last[i]) continue;
        Entry entry{.id = ids[s], .num = num.empty() ? 1 : num[s], .den = den.empty() ? 1 : den[s]};
        if (!keys.empty()) entry.key = own_row(keys, slot, head.keys, entry.id, head.d);
        if (!values.empty()) entry.value = own_row(values, slot, head.values, entry.id, head.dv);
        if (!token_keys.empty()) entry.key = own_row(token_keys, entry.id, head.keys, entry.id, head.d);
        if (!token_values.empty()) entry.value = own_row(token_values, entry.id, head.values, entry.id, head.dv);
        rows[static_cast<std::size_t>(r)].push_back(std::move(entry));
      }
    }
  }
  for (auto& row : rows) std::ranges::sort(row, [](const Entry& a, const Entry& b) { return (a <=> b) < 0; });
  return rows;
}

Ids ids_of(const std::vector<Entry>& entries) {
  std::vector<TokenId> ids;
  for (const Entry& entry : entries) {
    if (entry.num != 0 || entry.den != 0) ids.push_back(entry.id);
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace kvbench::testing
