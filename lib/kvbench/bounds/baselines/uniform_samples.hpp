// SPDX-License-Identifier: Apache-2.0
// The uniform baselines of BalanceKV (arXiv 2502.07861, Fig. 2): after the prompt and after each decoded token they hold the
// tokens and the weights that their rules give from the same draws. docs/theory/uniform.samples.md.
#pragma once

#include <kvbench/bounds/oracle/uniform_oracle.hpp>

namespace kvbench {

/// Implementations of both baselines: what they hold at the times of observe_stream().
using UniformStream = std::function<std::vector<Snapshot>(const StreamPlan&)>;
using UniformRepoStream = std::function<std::vector<Snapshot>(const StreamPlan&, const UniformRepoSizes&)>;
void check_uniform(CheckContext& context, const UniformStream& stream);
void check_uniform_repo(CheckContext& context, const UniformRepoStream& stream);

Claim uniform_samples();

}  // namespace kvbench
