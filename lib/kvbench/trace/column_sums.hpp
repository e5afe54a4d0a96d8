// SPDX-License-Identifier: Apache-2.0
// Column sums of causal attention by the kernels.
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
  std::vector<std::int64_t> positions;  ///< increasing; a query sees the keys up to its own
  /// [G*m, d] of the queries at positions[begin .. end - 1], row g*m + i; called by all threads
  std::function<std::vector<float>(std::size_t begin, std::size_t end)> rows;
  double scale = 1;  ///< logits are scale * <q, k>
};

/// Attention mass of the keys [n, dim], n above all positions, from each head's queries -> [G, n]: logits in fp32,
/// blocks of queries summed in fp64, the same bits on any number of threads. 2 dim flops and two exponentials per query
/// and key that it sees. Holds, beside keys and result, 8 MiB per thread and 32 MiB together, or 8 G n bytes per thread
/// where that is more. All threads call `step` with the share that is done; it may throw.
std::vector<double> column_sums(std::vector<float> keys, std::int64_t dim, const CausalQueries& queries,
                                const Backends& backends, const std::function<void(double share)>& step = {});

}  // namespace kvbench::trace
