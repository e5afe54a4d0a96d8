// SPDX-License-Identifier: Apache-2.0
// What methods declare to do and to hold, against the complexity that their papers state: the same head at growing lengths, a
// least-squares line through the logarithms, and its slope against the paper's exponent. No clock: floating point operations
// are those that kernels declare, bytes those of the footprint. docs/theory/cost.md.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/bounds/claims.hpp>

namespace kvbench {

/// Work of one head: compressing it, answering one query, and what a deployment holds.
struct Work {
  double compress_flops = 0, query_flops = 0;
  double bytes = 0;       ///< all arrays
  double fast_bytes = 0;  ///< of the fast tier
  double read_bytes = 0;  ///< by a query
};

/// [n, 16] keys around 32 centres.
Buffer<const float> cost_keys(Index n, Backend& backend);

struct CostCase {
  std::string method;
  std::vector<Assignment> settings;
  std::function<Index(Index)> budget;  ///< of n
};
/// Runs the method on a head of these keys and as wide values; seed 0.
Work work_of(const CostCase& what, Index n, Backend& backend);

/// Slope of ln y over ln n; 0 where y is 0 throughout.
double growth(const std::vector<Index>& lengths, const std::vector<double>& y);

/// A row: the fitted exponent of y against at most `stated`, with a tolerance for terms of lower order.
void add_growth(CheckContext& context, const std::string& part, const CostCase& what, const std::vector<Index>& lengths,
                const std::vector<double>& y, double stated, const std::string& complexity);

Claim subgen_cost();
Claim balancekv_cost();
Claim clusterkv_cost();
Claim chelsea_cost();

}  // namespace kvbench
