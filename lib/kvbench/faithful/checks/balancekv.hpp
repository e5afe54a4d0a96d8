// SPDX-License-Identifier: Apache-2.0
// BalanceKV (arXiv 2502.07861), Algorithms 1 to 4 and section 4, token by token: the ids and weights that `balancekv`
// holds after the prompt and after every appended token are those of a recomputation in fp64 from the same draws. The
// same for the released code and `balancekv-repo`. docs/theory/balancekv.algorithms.md.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <kvbench/faithful/oracle/balancekv.hpp>
#include <kvbench/faithful/oracle/balancekv_repo.hpp>

namespace kvbench::faithful {

/// A configuration and a stream. The seeds share a row: seed, seed + 1, ..
struct BalanceCase {
  std::string part;
  BalanceSetup setup;
  bounds::StreamPlan plan;
  Index seeds = 2;
  bool edge_values = false;  ///< values of exactly 1/2, 1 and 2 in place of those of the subject
};
/// Of the first tokens of a subject: batch and stream, exact pairs and smaller halves, all constants, shorter last
/// blocks, odd sizes, streams that start empty, norms at the edge of a bucket.
std::vector<BalanceCase> balance_cases(const bounds::Subject& subject);

/// The implementation under test: the snapshots of a stream.
using BalanceUnderTest = std::function<std::vector<bounds::Snapshot>(const bounds::Subject&, const bounds::StreamPlan&,
                                                                     const BalanceSetup&)>;
/// `balancekv` of the registry.
BalanceUnderTest library_balance(Backend& backend);

/// Adds the exact row of a case; none where no budget of this size can be met.
void check_balance_case(bounds::CheckContext& context, const BalanceCase& item, const BalanceUnderTest& under_test);

struct RepoCase {
  std::string part;
  RepoSetup setup;
  bounds::StreamPlan plan;
  Index seeds = 2;
};
std::vector<RepoCase> repo_cases(const bounds::Subject& subject);
using RepoUnderTest =
    std::function<std::vector<bounds::Snapshot>(const bounds::Subject&, const bounds::StreamPlan&, const RepoSetup&)>;
/// `balancekv-repo` of the registry.
RepoUnderTest library_repo(Backend& backend);
void check_repo_case(bounds::CheckContext& context, const RepoCase& item, const RepoUnderTest& under_test);

bounds::Check balancekv_algorithms();
bounds::Check balancekv_released();

}  // namespace kvbench::faithful
