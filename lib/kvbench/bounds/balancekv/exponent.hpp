// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Theorem 3.1 and section 4. The theorem states memory O*(1/eps), that is, an error that
// falls like 1/memory instead of 1/sqrt(memory) for independent samples. In the theorem the batch t grows with the
// budget; the experiments use blocks of a fixed size. With fixed blocks the variances of the errors of n/b blocks add,
// and the exponent is -1/2 however good the walk is; only growing blocks can give -1.
//
// The check halves a list T = 1 .. 4 times, in fixed blocks or in one block as long as the list. It fits a line to the
// logarithm of the error of the numerator, relative to its exact value, over that of the number of tokens kept. The
// slopes of different seeds are independent. docs/theory/balancekv.exponent.md.
#pragma once

#include <kvbench/bounds/balancekv/walks.hpp>

namespace kvbench::bounds {

struct ExponentSetup {
  Index tokens = 512;
  Index fixed_block = 32;
  Index rounds = 4;
  Index seeds = 30;
  std::uint32_t seed_offset = 0;
};

/// Assigns signs to a list in blocks, for one round of one seed.
using BlockSigns = std::function<std::vector<std::int32_t>(const WalkSample&, const std::vector<std::int32_t>& starts,
                                                           std::uint32_t draw)>;
/// softmax_balance() with a constant ("greedy", "tight", ...), over tokens or over pairs of tokens.
BlockSigns library_blocks(const std::string& constant, bool pairs, Backend& backend);

/// Slope of ln(error) over ln(tokens kept) of each seed: mean over queries. growing: block = the list.
std::vector<double> error_slopes(const WalkSample& sample, const std::vector<float>& queries,
                                 const ExponentSetup& setup, bool growing, const BlockSigns& signs,
                                 const std::function<void()>& poll);

/// Rows of one constant, fixed and growing side by side.
void check_exponent(CheckContext& context, const WalkSample& sample, const std::vector<float>& queries,
                    const ExponentSetup& setup, const std::string& constant, const BlockSigns& signs);

Check balancekv_exponent();

}  // namespace kvbench::bounds
