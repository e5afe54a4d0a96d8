// SPDX-License-Identifier: Apache-2.0
// Column sums of exact causal attention, by the kernels of the processor.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <kvbench/kernels/backend.hpp>

namespace kvbench::trace {

/// One per thread, all of the same instruction set.
using Backends = std::vector<std::unique_ptr<Backend>>;

/// Causal queries of query heads that share their keys.
struct CausalQueries {
  std::int64_t heads = 1;               ///< G
  std::vector<std::int64_t> positions;  ///< increasing; a query sees the keys up to its own position
  /// Rows [G*m, d] of the queries at positions[begin] .. positions[end - 1], row g*m + i; called by all threads.
  std::function<std::vector<float>(std::size_t begin, std::size_t end)> rows;
  double scale = 1;  ///< logits are scale * <q, k>
};

/// Attention mass of each of the keys [n, dim], n above all positions, from the queries of each head -> [G, n]; logits
/// in fp32, blocks of queries summed in fp64. The same bits on any number of threads. Takes 2 dim flops and two
/// exponentials per head, query and key that it sees. Beside keys and result, 8 MiB of logits per thread (4 G n bytes
/// if that is more) and 32 MiB of sums of all threads together (4 G n bytes per thread if that is more) are held. All
/// threads call `step` with the share of the work that is done; what it throws ends the work and is rethrown.
std::vector<double> column_sums(std::vector<float> keys, std::int64_t dim, const CausalQueries& queries,
                                const Backends& backends, const std::function<void(double share)>& step = {});

}  // namespace kvbench::trace
