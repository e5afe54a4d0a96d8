// SPDX-License-Identifier: Apache-2.0
// The operations and bytes that methods declare, against the complexity that their papers state. The same head is
// compressed at growing lengths; the slope of a least-squares line through the logarithms is compared with the exponent
// of the paper. No times are measured: floating point operations are those that the kernels declare, bytes those of the
// footprint. docs/theory/cost.md.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/bounds/check/check.hpp>

namespace kvbench::bounds {

/// The work of one head: to compress it, to answer one query, and the bytes that a deployment holds.
struct Work {
  double compress_flops = 0, query_flops = 0;
  double bytes = 0;       ///< of all arrays
  double fast_bytes = 0;  ///< of the fast tier
  double read_bytes = 0;  ///< per query
};

/// Keys and values have `dim` numbers; keys lie around `centres` centres, in turn.
struct CostShape {
  Index dim = 16, centres = 32;
};
Buffer<const float> cost_keys(Index n, Backend& backend, const CostShape& shape = {});

struct CostCase {
  std::string method;
  std::vector<methods::Assignment> settings;
  std::function<Index(Index)> budget;  ///< in tokens, for n tokens
  CostShape shape;
};
/// Runs the method on a head of n tokens; seed 0.
Work work_of(const CostCase& what, Index n, Backend& backend);

/// Slope of ln y over ln n; 0 where all y are 0.
double growth(const std::vector<Index>& lengths, const std::vector<double>& y);

/// Values over sizes, and how the paper says that they grow.
struct StatedGrowth {
  std::vector<Index> sizes;
  std::vector<double> values;  ///< by size
  double stated = 0;           ///< exponent
  std::string complexity;      ///< as stated: "O(n d)"
  std::string variable = "n";  ///< name of the sizes
};
/// Adds the row that the fitted exponent is at most the stated one, with a tolerance for terms of lower order.
void add_growth(CheckContext& context, const std::string& part, const CostCase& what, const StatedGrowth& of);

}  // namespace kvbench::bounds
