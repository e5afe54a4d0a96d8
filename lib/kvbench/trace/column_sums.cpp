// SPDX-License-Identifier: Apache-2.0
#include <kvbench/trace/column_sums.hpp>

#include <algorithm>
#include <atomic>

#include <kvbench/core/parallel_for.hpp>

namespace kvbench::trace {
namespace {

constexpr Index most_logits = 1 << 21, most_sums = 1 << 23;  // held at a time: per thread, by all of them

/// The queries begin .. end - 1, of which the last sees the first `keys` keys.
struct Block {
  std::size_t begin, end;
  Index keys;
};

/// Blocks of most_logits logits, or of one query where that has more.
std::vector<Block> blocks_of(const CausalQueries& queries) {
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < queries.positions.size(); ++i) {
    const Index keys = queries.positions[i] + 1;
    if (i == 0 || queries.heads * static_cast<Index>(i + 1 - blocks.back().begin) * keys > most_logits)
      blocks.push_back({i, i, 0});
    blocks.back() = {blocks.back().begin, i + 1, keys};
  }
  return blocks;
}

/// [G, block.keys]
std::vector<float> sums_of(const Block& block, const CausalQueries& queries, const Buffer<const float>& keys,
                           Backend& backend) {
  const auto m = static_cast<Index>(block.end - block.begin), rows = queries.heads * m;
  std::vector<std::int32_t> last;
  for (std::size_t i = block.begin; i < block.end; ++i)
    last.push_back(static_cast<std::int32_t>(queries.positions[i] + 1));
  const auto max = backend.allocate<float>(rows), log_sum_exp = backend.allocate<float>(rows);
  const auto scores = backend.allocate<float>(rows, block.keys),
             sums = backend.allocate<float>(queries.heads, block.keys);
  // Values without columns: only the logits and the sums of their exponentials are computed.
  backend.run(
      kernels::ExactAttention<Buffer>{.queries = backend.adopt(queries.rows(block.begin, block.end), rows, keys.cols()),
                                      .keys = keys.slice(0, block.keys),
                                      .values = backend.allocate<float>(block.keys, 0),
                                      .first = backend.adopt(std::vector<std::int32_t>(last.size()), m),
                                      .last = backend.adopt(std::move(last), m),
                                      .scale = static_cast<float>(queries.scale),
                                      .out = backend.allocate<float>(rows, 0),
                                      .max = max,
                                      .log_sum_exp = log_sum_exp,
                                      .scores = scores});
  backend.run(kernels::ColumnSums<Buffer>{.scores = scores, .log_sum_exp = log_sum_exp, .out = sums});
  return backend.read(sums);
}

}  // namespace

std::vector<double> column_sums(std::vector<float> keys, std::int64_t dim, const CausalQueries& queries,
                                const Backends& backends, const std::function<void(double share)>& step) {
  const Index n = static_cast<Index>(keys.size()) / dim;
  std::vector<double> sums(static_cast<std::size_t>(queries.heads * n));
  const Buffer<const float> all = backends[0]->adopt(std::move(keys), n, dim);
  const std::vector<Block> blocks = blocks_of(queries);
  // Blocks that run together are added in their order, so that the sums do not depend on which of them ends first.
  const std::size_t together = std::max(backends.size(), static_cast<std::size_t>(most_sums / (queries.heads * n)));
  std::atomic<std::size_t> done = 0;
  for (std::size_t begin = 0; begin < blocks.size(); begin += together) {
    std::vector<std::vector<float>> parts(std::min(together, blocks.size() - begin));
    parallel_for(parts.size(), backends.size(), [&](std::size_t i, std::size_t thread) {
      parts[i] = sums_of(blocks[begin + i], queries, all, *backends[thread]);
      if (step) step(static_cast<double>(++done) / static_cast<double>(blocks.size()));
    });
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Index seen = blocks[begin + i].keys;
      for (Index g = 0; g < queries.heads; ++g)
        std::transform(parts[i].begin() + g * seen, parts[i].begin() + (g + 1) * seen, sums.begin() + g * n,
                       sums.begin() + g * n, std::plus<double>());
    }
  }
  return sums;
}

}  // namespace kvbench::trace
