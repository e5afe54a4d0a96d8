// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/exact/exact_pass.hpp>

#include <algorithm>
#include <cmath>

#include <kvbench/core/error.hpp>
#include <kvbench/core/stopwatch.hpp>
#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::replay {
namespace {

/// Row numbers g*m + i in the block of the queries [begin, begin + count) of each query head.
std::vector<std::int32_t> row_numbers(Index group, Index queries, Index begin, Index count) {
  std::vector<std::int32_t> rows;
  for (Index g = 0; g < group; ++g) {
    for (Index i = 0; i < count; ++i) rows.push_back(static_cast<std::int32_t>(g * queries + begin + i));
  }
  return rows;
}

Buffer<const float> gathered_if_present(const Buffer<const float>& source, const Buffer<std::int32_t>& rows,
                                        Backend& backend) {
  return source.present() ? methods::gathered(source, rows, backend) : Buffer<const float>{};
}

/// Logits are finite (check_logits()), but sums of values may overflow.
void check_finite(const ExactBlock& exact, const Head& head) {
  const auto bad = std::ranges::find_if(exact.out, [](float x) { return !std::isfinite(x); });
  if (bad == exact.out.end()) return;
  const Index row = (bad - exact.out.begin()) / head.tokens.values.cols(), m = exact.block.size();
  throw Error(
      "prompt '{}', layer {}, query head {}: the exact output of the query at position {} is {} in fp32; write the "
      "trace with smaller values",
      head.prompt.prompt_group, head.prompt.layer.value, head.place.kv_head * head.group + row / m,
      exact.block.positions[static_cast<std::size_t>(row % m)], *bad);
}

}  // namespace

std::vector<float> query_rows(const std::vector<float>& all, Index group, Index m, Index begin, Index count) {
  const auto dim = static_cast<Index>(all.size()) / (group * m);
  std::vector<float> rows;
  rows.reserve(static_cast<std::size_t>(group * count * dim));
  for (Index g = 0; g < group; ++g) {
    const auto from = all.begin() + (g * m + begin) * dim;
    rows.insert(rows.end(), from, from + count * dim);
  }
  return rows;
}

Index block_queries(const Head& head, double bytes) {
  const double per_query = static_cast<double>(head.group) * static_cast<double>(head.num_tokens()) * sizeof(float);
  return std::clamp<Index>(static_cast<Index>(bytes / per_query), 1, std::max<Index>(1, head.queries_per_head()));
}

ExactBlock exact_block(const Head& head, Index begin, Index count, Backend& backend) {
  const Index n = head.num_tokens(), rows = head.group * count, d = head.tokens.keys.cols(),
              dv = head.tokens.values.cols();
  ExactBlock exact;
  exact.begin = begin;
  exact.block.positions.assign(head.positions.begin() + begin, head.positions.begin() + begin + count);
  for (const std::int32_t p : exact.block.positions) {
    exact.visible_first.push_back(static_cast<std::int32_t>(head.first_seen(p)));
    exact.visible_last.push_back(p + 1);
  }
  exact.block.first = backend.adopt(std::vector(exact.visible_first), count);
  exact.block.last = backend.adopt(std::vector(exact.visible_last), count);
  exact.block.queries =
      backend.adopt(query_rows(head.queries, head.group, head.queries_per_head(), begin, count), rows, d);
  if (!head.speculated.empty()) {
    exact.block.speculated =
        backend.adopt(query_rows(head.speculated, head.group, head.queries_per_head(), begin, count), rows, d);
  }
  Buffer<float> out = backend.allocate<float>(rows, dv), max = backend.allocate<float>(rows),
                lse = backend.allocate<float>(rows), scores = backend.allocate<float>(rows, n);
  const Stopwatch watch(backend);
  backend.run(kernels::ExactAttention<Buffer>{.queries = exact.block.queries,
                                              .keys = head.tokens.keys,
                                              .values = head.tokens.values,
                                              .first = exact.block.first,
                                              .last = exact.block.last,
                                              .scale = head.tokens.scale,
                                              .out = out,
                                              .max = max,
                                              .log_sum_exp = lse,
                                              .scores = scores});
  exact.out = backend.read(out);
  exact.seconds = watch.seconds();
  check_finite(exact, head);
  exact.block.scores = scores;
  exact.block.outputs = out;
  exact.block.log_sum_exp = lse;
  exact.log_sum_exp = backend.read(lse);
  exact.scores = backend.on_host(scores);
  Buffer<float> shares = backend.allocate<float>(rows, n), norm = backend.allocate<float>(rows);
  backend.run(kernels::SoftmaxRows<Buffer>{.scores = scores, .log_sum_exp = lse, .out = shares, .norm = norm});
  exact.shares = backend.on_host(shares);
  exact.p_norm = backend.read(norm);
  return exact;
}

BestTokens ExactBlock::best(Backend& backend, Index k, Index first, Index last, Index row) {
  return ranking_.best(backend, {block.scores, scores, shares, visible_first, visible_last}, k, first, last, row);
}

methods::QueryBlock sub_block(const methods::QueryBlock& block, Index group, Index begin, Index count,
                              Backend& backend) {
  const Index m = block.size();
  if (begin == 0 && count == m) return block;
  const Buffer<std::int32_t> rows = backend.adopt(row_numbers(group, m, begin, count), group * count);
  return {.queries = methods::gathered(block.queries, rows, backend),
          .positions = {block.positions.begin() + begin, block.positions.begin() + begin + count},
          .first = block.first.slice(begin, count),
          .last = block.last.slice(begin, count),
          .scores = gathered_if_present(block.scores, rows, backend),
          .speculated = gathered_if_present(block.speculated, rows, backend),
          .outputs = gathered_if_present(block.outputs, rows, backend),
          .log_sum_exp = gathered_if_present(block.log_sum_exp, rows, backend)};
}

}  // namespace kvbench::replay
