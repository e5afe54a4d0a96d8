// SPDX-License-Identifier: Apache-2.0
#include <kvbench/replay/exact/token_map.hpp>

#include <iterator>

#include <kvbench/methods/stages/rows.hpp>

namespace kvbench::replay {
namespace {

/// Rows by local token as rows by token of the trace. Tokens that are not local get any row.
Buffer<const float> rows_to_global(const Buffer<const float>& rows, const TokenMap& map, Backend& backend) {
  if (!rows.present() || rows.rows() == 0) return rows;
  std::vector<std::int32_t> ids(static_cast<std::size_t>(map.to_global(rows.rows() - 1) + 1), 0);
  for (Index local = 0; local < rows.rows(); ++local)
    ids[static_cast<std::size_t>(map.to_global(local))] = static_cast<std::int32_t>(local);
  const Index count = std::ssize(ids);
  const auto out = backend.allocate<float>(count, rows.cols());
  backend.run(kernels::GatherRows<Buffer>{.source = rows, .ids = backend.adopt(std::move(ids), count), .out = out});
  return out;
}

}  // namespace

methods::EntryTable to_global(methods::EntryTable table, const TokenMap& map, Backend& backend) {
  if (map.identity()) return table;
  std::vector<std::int32_t> ids = backend.read(table.ids);
  for (std::int32_t& id : ids) {
    if (id >= 0) id = static_cast<std::int32_t>(map.to_global(id));
  }
  table.ids = backend.adopt(std::move(ids), table.ids.rows(), table.ids.cols());
  table.token_keys = rows_to_global(table.token_keys, map, backend);
  table.token_values = rows_to_global(table.token_values, map, backend);
  return table;
}

Index TokenMap::local_end(Index global_end) const {
  if (global_end <= first) return 0;
  if (global_end <= first + middle) return global_end - first;
  return std::max(middle, global_end - first - last);
}

Buffer<const float> fixed_log_sum_exp(const methods::HeadTokens& tokens, const TokenMap& map,
                                      const methods::HeadPrompt& view, Backend& backend) {
  std::vector<TokenId> fixed = methods::token_range(0, map.first);
  std::ranges::copy(methods::token_range(map.first + map.middle, map.last), std::back_inserter(fixed));
  const auto count_below = [&](Index position) {
    return static_cast<std::int32_t>(position - map.local_end(position));
  };
  std::vector<std::int32_t> first, last;
  for (const std::int32_t local : view.observed_positions) {
    const auto position = static_cast<std::int32_t>(local + map.first);
    first.push_back(count_below(first_seen_by(position, view.window)));
    last.push_back(count_below(position + 1));
  }
  const Index rows = view.observed.rows(), queries = std::ssize(first);
  const auto sums = backend.allocate<float>(rows);
  backend.run(kernels::ExactAttention<Buffer>{.queries = view.observed,
                                              .keys = methods::gathered(tokens.keys, fixed, backend),
                                              .values = methods::gathered(tokens.values, fixed, backend),
                                              .first = backend.adopt(std::move(first), queries),
                                              .last = backend.adopt(std::move(last), queries),
                                              .scale = view.scale,
                                              .out = backend.allocate<float>(rows, view.values.cols()),
                                              .max = backend.allocate<float>(rows),
                                              .log_sum_exp = sums});
  return sums;
}

methods::QueryBlock localize(const methods::QueryBlock& block, std::span<const std::int32_t> visible_first,
                             const HostView<float>& scores, const TokenMap& map, Backend& backend) {
  if (map.identity()) return block;
  const Index n = block.scores.cols(), rows = block.queries.rows(), m = block.size(), locals = map.local_end(n);
  methods::QueryBlock local{.queries = block.queries,
                            .speculated = block.speculated,
                            .outputs = block.outputs,
                            .log_sum_exp = block.log_sum_exp};
  std::vector<std::int32_t> first, last;
  for (std::size_t i = 0; i < block.positions.size(); ++i) {
    const Index end = map.local_end(block.positions[i] + 1);
    local.positions.push_back(static_cast<std::int32_t>(end - 1));
    first.push_back(static_cast<std::int32_t>(map.local_end(visible_first[i])));
    last.push_back(static_cast<std::int32_t>(end));
  }
  local.first = backend.adopt(std::move(first), m);
  local.last = backend.adopt(std::move(last), m);
  std::vector<float> own(static_cast<std::size_t>(rows * locals));
  for (Index r = 0; r < rows; ++r) {
    const auto from = scores.begin() + r * n;
    const auto to = own.begin() + r * locals;
    std::copy(from + map.first, from + map.first + map.middle, to);
    std::copy(from + map.to_global(map.middle), from + n, to + map.middle);
  }
  local.scores = backend.adopt(std::move(own), rows, locals);
  return local;
}

}  // namespace kvbench::replay
